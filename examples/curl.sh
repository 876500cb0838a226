#!/usr/bin/env bash
# A constrained answer, and the refusal of a schema that cannot be enforced.
set -euo pipefail
base=${OPENAI_BASE_URL:-http://127.0.0.1:9000/v1}

curl -sS --fail "$base/chat/completions" -H 'content-type: application/json' -d '{
  "messages": [{"role": "user", "content": "Is fire hot?"}],
  "guided_choice": ["yes", "no"]
}'
echo
curl -sS "$base/chat/completions" -H 'content-type: application/json' -d '{
  "messages": [{"role": "user", "content": "A code."}],
  "response_format": {"type": "json_schema", "json_schema": {"name": "code", "schema": {"type": "string", "pattern": "^[a-z](?=.*[0-9]).+$"}}}
}'
echo
