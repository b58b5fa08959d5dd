"""The methods `ready` that Django calls as it starts, also in Celery's beat: those of applications that are installed."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping

from penstock_import.celery_calls import imported_names, walk
from penstock_import.celery_entries import conditional


def installed_applications(trees: Mapping[str, ast.Module]) -> set[str]:
    """Return the texts in `INSTALLED_APPS`, and in the lists that it is made of, that stand under no condition."""
    texts: set[str] = set()
    for tree in trees.values():
        for node in walk(tree):
            if isinstance(node, ast.Assign):
                names = [_last(target) for target in node.targets]
            elif isinstance(node, ast.AnnAssign | ast.AugAssign):
                names = [_last(node.target)]
            else:
                continue
            if any(name.endswith("_APPS") for name in names) and node.value is not None:
                parts = [part for part in ast.walk(node.value) if isinstance(part, ast.Constant)]
                texts |= {
                    part.value
                    for part in parts
                    if isinstance(part.value, str) and id(part) not in conditional(tree)
                }
    return texts


def starts_of_django(
    tree: ast.Module, modules: Collection[str], installed: Collection[str]
) -> Iterator[ast.FunctionDef]:
    """Yield each method `ready` of a module that Django calls. `modules` are the names that the module may have."""
    imported = dict(imported_names(tree))
    classes = [part for part in tree.body if isinstance(part, ast.ClassDef)]
    configs = [part for part in classes if any(_is_config(base, imported) for base in part.bases)]
    defaults = [part for part in configs if _is_default(part)]
    for class_ in configs:
        paths = {f"{module}.{class_.name}" for module in modules}
        if class_ in defaults or (not defaults and len(configs) == 1):
            # Django finds the one configuration in `apps.py` of a package that is installed by its own name.
            paths |= {module.removesuffix(".apps") for module in modules if module.endswith(".apps")}
        if not paths & set(installed):
            continue
        for part in class_.body:
            is_ready = isinstance(part, ast.FunctionDef) and part.name == "ready" and not part.decorator_list
            if is_ready and isinstance(part, ast.FunctionDef):
                yield part


def _is_config(base: ast.expr, imported: Mapping[str, str]) -> bool:
    text = ast.unparse(base)
    root, _, members = text.partition(".")
    path = f"{imported.get(root, root)}.{members}".rstrip(".")
    return path in ("django.apps.AppConfig", "django.apps.config.AppConfig")


def _is_default(class_: ast.ClassDef) -> bool:
    """Return whether a configuration says that it is the default of its package."""
    return any(
        isinstance(part, ast.Assign)
        and [_last(target) for target in part.targets] == ["default"]
        and getattr(part.value, "value", None) is True
        for part in class_.body
    )


def _last(target: ast.expr) -> str:
    return target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
