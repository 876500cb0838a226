"""Constraints that are no JSON Schema: a choice, a regular expression, a grammar."""

import json
import os

from openai import OpenAI

CONSTRAINTS = {
    "choice": {"guided_choice": ["positive", "negative", "neutral"]},
    "date": {"guided_regex": "[0-9]{4}-[0-9]{2}-[0-9]{2}"},
    "sum": {"guided_grammar": 'root ::= number " + " number\nnumber ::= [1-9] [0-9]?'},
}

with OpenAI(
    base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:9000/v1"),
    api_key=os.environ.get("OPENAI_API_KEY", "any"),
) as client:
    answers = {
        name: client.chat.completions.create(
            model="guided_llm",
            messages=[{"role": "user", "content": f"Give an example of a {name}."}],
            extra_body=constraint,
        )
        .choices[0]
        .message.content
        for name, constraint in CONSTRAINTS.items()
    }
print(json.dumps(answers))
