"""Files of folders that a stranger may have filled are opened by one module, core/files.py."""

import ast
from pathlib import Path

import pytest

from tests.harness import ROOT

PACKAGE = ROOT / "fairbench"
BEHIND = (
    *sorted((PACKAGE / "results").glob("*.py")),
    *(PACKAGE / "core" / f"{name}.py" for name in ("files", "processes")),
    *(PACKAGE / "experiments" / f"{name}.py" for name in ("execute", "pipeline")),
    PACKAGE / "audits" / "report.py",
    *(ROOT / "extensions" / name for name in (
        "label/fairbench_label/session.py", "search/fairbench_search/tuning.py",
        "watch/fairbench_watch/state.py",
    )),
    *sorted((PACKAGE / "reporting" / "page").glob("*.py")),
    PACKAGE / "reporting" / "document" / "writing.py",
    PACKAGE / "tracking" / "importer.py",
)  # fmt: skip
# Methods of a path, and functions of os, shutil and tempfile, that open, make, remove or rename.
OF_PATHS = {
    "chmod", "glob", "hardlink_to", "iterdir", "mkdir", "open", "read_bytes", "read_metadata",
    "read_text", "rename", "rglob", "rmdir", "symlink_to", "touch", "unlink", "write_bytes",
    "write_text",
}  # fmt: skip
OF_MODULES = {
    "files": set(),  # core/files.py itself
    "os": {"chmod", "fwalk", "link", "listdir", "makedirs", "mkdir", "open", "remove", "rename",
           "renames", "replace", "rmdir", "scandir", "symlink", "truncate", "unlink", "utime",
           "walk"},
    "shutil": {"copy", "copy2", "copyfile", "copytree", "move", "rmtree"},
    "tempfile": {"NamedTemporaryFile", "TemporaryDirectory", "mkdtemp", "mkstemp"},
}  # fmt: skip
# What is read of the machine, of the checkout, of a file that its user names, or of an open zip;
# and descriptors.
THROUGH = ("opened", "files.opened")
ALLOWED = {
    "Path('/proc/cpuinfo').read_text()",
    "Path('/proc/self/statm').read_bytes()",
    "Path(f'/proc/{parents[-1]}/stat').read_text()",
    # The private folder that a browser prints a page in.
    "tempfile.TemporaryDirectory(ignore_cleanup_errors=True)",
    "printed.read_bytes()",
    "(conf / group).glob('*.yaml')",
    "path.open('rb')",
    "os.scandir(handle)",
    "os.utime(handle)",
    # The way into the outermost folder, by which all others are reached.
    "os.open(start, _FOLDER)",
    "Path(start).mkdir(511 if inner_names else make, parents=True, exist_ok=True)",
    "archive.open(name)",
}


def calls(path):
    """Yield the calls of a module that reach a file by its path."""
    for call in ast.walk(ast.parse(path.read_text())):
        if not isinstance(call, ast.Call) or ast.unparse(call) in ALLOWED:
            continue
        name, what = call.func, call.args[0] if call.args else None
        if isinstance(name, ast.Attribute):
            module = name.value.id if isinstance(name.value, ast.Name) else ""
            if name.attr in OF_MODULES.get(module, OF_PATHS) and not _of_folder(call):
                yield call
        opens = isinstance(name, ast.Name) and name.id == "open"
        through = isinstance(what, ast.Call) and ast.unparse(what.func) in THROUGH
        if opens and not through and ast.unparse(what) != "handle":
            yield call


def _of_folder(call):
    """Say whether a call takes a folder's descriptor, or a file's; or renames a table's columns."""
    words = [word.arg or "" for word in call.keywords]
    descriptor = call.args and ast.unparse(call.args[0]).endswith("fileno()")
    return descriptor or "columns" in words or any(word.endswith("dir_fd") for word in words)


@pytest.mark.parametrize("path", BEHIND, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_opens_files_but_the_one_function_that_checks_them(path):
    assert not [f"line {call.lineno}: {ast.unparse(call)}" for call in calls(path)]


def test_what_goes_beside_the_door_is_found(tmp_path):
    module = Path(tmp_path / "module.py")
    lines = {
        "open(path)": True,
        "path.read_bytes()": True,
        "path.parent.mkdir(parents=True)": True,
        "os.unlink(path)": True,
        "shutil.rmtree(path)": True,
        "open(opened(path))": False,
        "open(handle)": False,
        "text.replace('a', 'b')": False,
        "os.replace(half, name, src_dir_fd=folder, dst_dir_fd=folder)": False,
    }
    module.write_text("\n".join(lines))
    told = {call.lineno for call in calls(module)}
    assert [number in told for number, _ in enumerate(lines, 1)] == list(lines.values())
