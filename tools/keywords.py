"""Makes `client/settings/keywords.py`: the settings as keyword arguments, for editors."""

import ast
import inspect
from collections.abc import Iterator
from dataclasses import MISSING, Field, dataclass, fields
from textwrap import wrap
from types import ModuleType
from typing import Any

from semel.client.settings import clients, connection
from semel.spark.sink import options

HEAD = '''"""The settings of clients as keyword arguments, for editors and type checkers.

Made from `connection.py` and `clients.py` by `make generated`: change those.
"""

import ssl
from collections.abc import Sequence
from typing import Literal, TypedDict

from semel.client.settings.clients import (
    Acks,
    AutoOffsetReset,
    CompressionType,
    GroupProtocol,
    IsolationLevel,
)
from semel.client.settings.connection import SaslMechanism, SecurityProtocol
from semel.net.client_sasl import Token
'''
# What is a parameter with a place of its own in every signature.
_APART = {"bootstrap_servers"}
_WIDTH = 90


@dataclass(frozen=True)
class Setting:
    name: str
    kind: str
    meaning: str
    default: Any

    @property
    def shown_default(self) -> str:
        if self.default is MISSING:
            return "none"
        if isinstance(self.default, int) and not isinstance(self.default, bool):
            return f"{self.default:_}"
        return repr(self.default)


def own_settings(cls: type[Any]) -> list[Setting]:
    """The settings that a class adds to those of its base, in the order of the file."""
    module = inspect.getmodule(cls)
    assert module is not None
    defaults: dict[str, Field[Any]] = {each.name: each for each in fields(cls)}
    return [
        Setting(name, kind, meaning, defaults[name].default)
        for name, kind, meaning in _annotated(module, cls.__name__)
    ]


def _annotated(module: ModuleType, name: str) -> Iterator[tuple[str, str, str]]:
    tree = ast.parse(inspect.getsource(module))
    body = next(n.body for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name)
    for place, node in enumerate(body):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            after = body[place + 1]
            assert isinstance(after, ast.Expr), f"{node.target.id} is not documented"
            assert isinstance(after.value, ast.Constant), f"{node.target.id} is not documented"
            words = " ".join(str(after.value.value).split())
            yield node.target.id, ast.unparse(node.annotation), words


def keywords_module() -> str:
    """The whole text of the module, not yet formatted."""
    parts = [
        HEAD,
        _class("ConnectionKeywords", "TypedDict", own_settings(connection.ConnectionSettings)),
        _class("ClientKeywords", "ConnectionKeywords", own_settings(clients.ClientSettings)),
        _class("ProducerKeywords", "ClientKeywords", own_settings(clients.ProducerSettings)),
        _class("ConsumerKeywords", "ClientKeywords", own_settings(clients.ConsumerSettings)),
        _class("TransactKeywords", "ClientKeywords", list(_for_transact())),
    ]
    return "\n\n".join(parts)


SINK_HEAD = '''"""The options of the sink as keyword arguments, for editors and type checkers.

Made from `options.py` by `make generated`: change that.
"""

from collections.abc import Mapping
from typing import Any, TypedDict

from semel.client.settings.clients import CompressionType
'''


def sink_keywords_module() -> str:
    """The same for Spark's sink."""
    parts = [
        SINK_HEAD,
        _class("WriteKeywords", "TypedDict", own_settings(options.WriteOptions)),
        _class("SinkKeywords", "WriteKeywords", own_settings(options.SinkOptions)),
    ]
    return "\n\n".join(parts)


def _for_transact() -> Iterator[Setting]:
    for cls in (clients.ConsumerSettings, clients.ProducerSettings):
        yield from (s for s in own_settings(cls) if s.name not in clients.TRANSACT_DECIDES)


def _class(name: str, base: str, settings: list[Setting]) -> str:
    lines = [f"class {name}({base}, total=False):"]
    for setting in settings:
        if setting.name in _APART:
            continue
        lines.append(
            f"    {setting.name}: {setting.kind.replace('tuple[str, ...]', 'Sequence[str]')}"
        )
        text = f"{setting.meaning} Default: `{setting.shown_default}`."
        documented = wrap(text, _WIDTH, break_on_hyphens=False)
        lines.append('    """' + "\n    ".join(documented) + '"""')
    return "\n".join(lines) + "\n"
