"""One model that is served: its names, tokenizer, template, and how its family writes calls."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from guided_grammar.formats import HERMES, CallStyle, ToolFormat, proposed, tool_format

from guided_frontend.errors import NotFound
from guided_frontend.prompt import ChatTemplate, PromptTokenizer
from guided_frontend.proposal import takes_ours
from guided_frontend.settings import Settings

_LOG = logging.getLogger("guided_frontend")
_SHIPPED = "chatml_tools"
AUTO = "auto"
THINKING_SWITCHES = ("enable_thinking", "thinking")
"""Variables of chat templates that switch reasoning."""
EFFORT = "reasoning_effort"


@dataclass(frozen=True)
class ServedModel:
    """names: canonical name first. context: tokens of prompt plus answer as configured, None where the engine chooses.

    shows_tools: False for a family without call markup and for models configured as too small for tools.
    thinks: the template has a switch for reasoning. thinks_unasked: it has none but shows blocks of earlier answers,
    so the model decides. takes_effort: the template is told `reasoning_effort`.
    """

    names: tuple[str, ...]
    triton_name: str
    tokenizer: PromptTokenizer
    template: ChatTemplate
    format: ToolFormat
    shows_tools: bool
    thinks: bool
    thinks_unasked: bool = False
    takes_effort: bool = False
    context: int | None = None
    bos: str = ""
    eos: str = ""

    @property
    def shown_tokens(self) -> tuple[str, ...]:
        """Control tokens that readers of an answer look for where no grammar names them."""
        reasoning = () if self.format.reasoning is None else self.format.reasoning.markup
        messages = self.format.tokens if self.format.style is CallStyle.HARMONY else ()
        return self.tokenizer.control_tokens((*reasoning, *messages))


def load(settings: Settings, parameters: Mapping[str, str]) -> ServedModel:
    """Reads the tokenizer folder. `parameters`: those of the Triton model's configuration.

    Raises OSError or ValueError when the folder or the template cannot be read, InvalidConstraint for a format name.
    """
    folder = Path(settings.model or parameters.get("model", ""))
    if not (folder / "tokenizer.json").is_file():
        raise ValueError(f"no tokenizer.json in {str(folder)!r}; set model to the folder that holds it")
    config = _json(folder / "tokenizer_config.json")
    chosen = settings.chat_template or parameters.get("chat_template", "")
    row = settings.tool_format or parameters.get("tool_format", "") or AUTO
    template = _template(chosen, folder, config)
    if row == AUTO:
        row, template = _proposed(template, bool(chosen))
        _LOG.info("tool format %s proposed from the chat template", row)
    family, chat_template = tool_format(row), ChatTemplate(template)
    can_switch = not chat_template.variables.isdisjoint(THINKING_SWITCHES)
    told = parameters.get("max_model_len", "0")
    configured = settings.max_model_len or (int(told) if told.isdigit() else 0)
    names = settings.served_model_names or (settings.triton_model,)
    return ServedModel(
        names=names,
        triton_name=settings.triton_model,
        tokenizer=PromptTokenizer(folder),
        template=chat_template,
        takes_effort=EFFORT in chat_template.variables,
        format=family,
        shows_tools=family.has_calls and not set(names) & set(settings.no_tools),
        thinks=family.reasoning is not None and can_switch,
        thinks_unasked=family.reasoning is not None and not can_switch and family.reasoning.open.strip() in template,
        context=configured or None,
        bos=_token(config, "bos_token"),
        eos=_token(config, "eos_token"),
    )


def _proposed(template: str, is_chosen: bool) -> tuple[str, str]:
    """Format and template for a model of which only the template is known."""
    if takes_ours(template) and not is_chosen:
        return HERMES.name, _shipped(_SHIPPED)
    return proposed(template), template


def find(models: tuple[ServedModel, ...], name: str | None) -> ServedModel:
    """The model of that name or alias; None is the first. Raises NotFound."""
    if name is None:
        return models[0]
    for model in models:
        if name in model.names:
            return model
    known = ", ".join(n for model in models for n in model.names)
    raise NotFound(f"the model {name!r} does not exist; served here: {known}", "model")


def _json(path: Path) -> Mapping[str, Any]:
    loaded = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return loaded if isinstance(loaded, dict) else {}


def _shipped(name: str) -> str:
    return (resources.files("guided_frontend") / "templates" / f"{name}.jinja").read_text(encoding="utf-8")


def _template(chosen: str, folder: Path, config: Mapping[str, Any]) -> str:
    if chosen == _SHIPPED:
        return _shipped(chosen)
    path = Path(chosen) if chosen else folder / "chat_template.jinja"
    if chosen or path.is_file():
        return path.read_text(encoding="utf-8")
    inside = config.get("chat_template")
    if isinstance(inside, list):
        named = {entry.get("name"): entry.get("template") for entry in inside if isinstance(entry, dict)}
        inside = named.get("tool_use") or named.get("default")
    if not isinstance(inside, str):
        raise ValueError(f"{folder} holds no chat template; set chat_template")
    return inside


def _token(config: Mapping[str, Any], name: str) -> str:
    token = config.get(name)
    return str(token.get("content", "")) if isinstance(token, dict) else str(token or "")
