"""Programs that misbehave at a quarter of the points, and print an honest value at the others.

A program gets x, n and the number of the evaluation as its arguments $1, $2 and $3. Its honest value is x.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cases import (
    BEGUN,
    COMMAND_LINE,
    EITHER,
    ENDS_TOO,
    FAILED,
    PROCESS,
    SANDBOXES,
    TIMEOUT,
    VALUE,
    Case,
    Params,
)

LIE = "-1000"  # a value that no point has
INFINITY = float("inf")
STDOUT, JSON, FILE = "stdout", "json:f", "file:out.txt"
REGEX, SLOW_REGEX = r"regex:^f=(\S+)", r"regex:^f=((?:[-+.e\d]+)+)$"
# How an honest program gives its value, by the place where mixcma looks for it.
HONEST = {
    STDOUT: 'echo "$1"',
    JSON: 'echo "{\\"f\\": $1}"',
    FILE: 'echo "$1" > out.txt',
    REGEX: 'echo "f=$1"',
    SLOW_REGEX: 'echo "f=$1"',
}
FIRST_LINE = "#!/bin/sh\n"
EACH = "runs/{id}"
OWN_FILE = {"rule": FILE, "workdir": EACH}  # the file lies in a folder of its own


@dataclass(frozen=True)
class Program(Case):
    """A program that misbehaves.

    Parameters
    ----------
    body
        What the script does where it misbehaves.
    rule
        Where mixcma looks for the value.
    workdir
        The folder of each evaluation; None is one folder for all.
    arguments
        Those after the program.
    names
        What the variables are called that are known as x and n otherwise.
    file
        What is wrong with the program file itself, where it misbehaves: a key of `SPOILT`.
    """

    body: str = ""
    rule: str = STDOUT
    workdir: str | None = None
    arguments: tuple[str, ...] = ("{x}", "{n}", "{id}")
    names: tuple[str, str] = ("x", "n")
    file: str | None = None

    def script(self) -> str:
        return f"{FIRST_LINE}if [ $(($2 % 4)) -ne 1 ]; then {HONEST[self.rule]}; exit 0; fi\n{self.body}\n"


def honest(p: Params) -> float:
    return float(p["x"])


CASES: dict[str, Program] = {}


def attack(name: str, wrong: str, makes: str, body: str = "", **options: Any) -> None:
    """Enter a program into the table."""
    CASES[name] = Program(name, wrong, makes, body=body, **options)


# Ends

attack("exits_1", "Prints its value and exits with status 1", FAILED, 'echo "$1"; exit 1')
attack("exits_255", "Prints nothing and exits with status 255", FAILED, "exit 255")
attack("exits_0_without_output", "Prints nothing and exits with status 0", FAILED, "exit 0")
for _signal in ("KILL", "SEGV", "ABRT", "TERM", "HUP", "PIPE", "XCPU", "USR1"):
    _wrong = f"Prints its value and dies of SIG{_signal}"
    attack(f"dies_of_sig{_signal.lower()}", _wrong, FAILED, f'echo "$1"; ulimit -c 0; kill -{_signal} $$; sleep 5')
attack("closes_descriptors", "Closes its streams, and has nothing more to say", FAILED, "exec 0<&- 1>&- 2>&-; exit 0")
attack("closes_stdout_then_fails", "Prints its value, closes stdout, and fails later", FAILED,
       'echo "$1"; exec 1>&- 2>&-; sleep 0.1; exit 3')  # fmt: skip
attack("closes_stdout_then_works", "Prints its value, closes its streams, and works on", VALUE,
       'echo "$1"; exec 1>&- 2>&-; sleep 0.1; exit 0')  # fmt: skip

# What is printed

attack("prints_nan", "Prints nan", FAILED, "echo nan")
attack("prints_infinity", "Prints inf", VALUE, "echo inf", value=INFINITY)
attack("prints_minus_infinity", "Prints -inf", FAILED, "echo -inf")
attack("prints_overflow", "Prints -1e999, which is -inf as a float", FAILED, "echo -1e999")
attack("prints_garbage", "Prints random bytes", FAILED, "head -c 4096 /dev/urandom; echo; echo end")
attack("prints_zero_bytes", "Prints its value behind zero bytes", FAILED, "head -c 9 /dev/zero; echo $1")
attack("prints_without_newline", "Prints its value without a newline", VALUE, 'printf %s "$1"')
attack("prints_carriage_returns", "Prints progress with carriage returns before its value", VALUE,
       r'printf "10%%\r20%%\r%s\r\n" "$1"')  # fmt: skip
attack("prints_utf16", "Prints its value in UTF-16", FAILED, 'printf %s "$1" | sed "s/./&\\x00/g"')
attack("prints_byte_order_mark", "Prints a byte order mark before its value", EITHER, r'printf "\357\273\277%s\n" "$1"')
attack("prints_colours", "Prints its value in colour", FAILED, r'printf "\033[32m%s\033[0m\n" "$1"')
attack("prints_junk_afterwards", "Prints its value and then a farewell", FAILED, 'echo "$1"; echo good bye')
attack("prints_blank_lines_afterwards", "Prints its value and then blank lines", VALUE, 'echo "$1"; echo; echo "  "')
attack("prints_unit", "Prints its value with a unit", FAILED, 'echo "$1 kg"')
attack("prints_decimal_comma", "Prints 1,5 for 1.5", FAILED, "echo 1,5")
attack("prints_hexadecimal", "Prints 0x1p-3", FAILED, "echo 0x1p-3")
attack("prints_underscores", "Prints 2024_01_01, which Python takes for a number", FAILED, "echo 2024_01_01")
attack("prints_other_digits", "Prints Arabic digits, which Python takes for a number", FAILED,
       r'printf "\331\241\331\242\n"')  # fmt: skip
attack("prints_several_numbers", "Prints several numbers in one line", FAILED, 'echo "$1 $1 $1"')
attack("prints_truth", "Prints true", FAILED, "echo true")
attack("prints_twice", "Prints its value twice", VALUE, 'echo "$1"; echo "$1"')
attack("prints_lie_first", "Prints another value before its own", VALUE, f'echo {LIE}; echo "$1"')
attack("prints_other_id", "Prints the number of another evaluation before its value", VALUE,
       'echo "evaluation $(($3 + 1))"; echo "$1"')  # fmt: skip
attack("prints_to_stderr", "Prints its value to stderr", FAILED, 'echo "$1" >&2')
attack("prints_50_megabytes", "Prints 50 MB and then its value", FAILED,
       'head -c 50000000 /dev/zero; echo; echo "$1"')  # fmt: skip
attack("prints_for_ever", "Prints without end", FAILED, "exec yes")
attack("prints_a_megabyte_of_errors", "Prints 1 MB to stderr before its value", VALUE,
       'head -c 1000000 /dev/zero >&2; echo "$1"')  # fmt: skip
attack("prints_errors_for_ever", "Prints to stderr without end", FAILED, "exec yes >&2")
attack("prints_million_lines", "Prints 300,000 lines before its value", VALUE, 'yes | head -n 300000; echo "$1"')

# JSON

attack("json_nan", "Gives NaN in its JSON", FAILED, "echo '{\"f\": NaN}'", rule=JSON)
attack("json_null", "Gives null in its JSON", FAILED, "echo '{\"f\": null}'", rule=JSON)
attack("json_truth", "Gives true in its JSON", FAILED, "echo '{\"f\": true}'", rule=JSON)
attack("json_list", "Gives a list in its JSON", FAILED, 'echo "{\\"f\\": [$1]}"', rule=JSON)
attack("json_text", "Gives its value as text in its JSON", EITHER, 'echo "{\\"f\\": \\"$1\\"}"', rule=JSON)
attack("json_other_key", "Gives its value under another name in its JSON", FAILED, 'echo "{\\"g\\": $1}"', rule=JSON)
attack("json_cut", "Breaks off in the middle of its JSON", FAILED, 'printf "{\\"f\\": $1"', rule=JSON)
attack("json_several", "Prints several JSON documents; the last one counts", VALUE,
       f'echo "{{\\"f\\": {LIE}}}"; echo "{{\\"f\\": $1}}"', rule=JSON)  # fmt: skip
attack("json_twice_in_a_line", "Prints two JSON documents in one line", FAILED,
       f'echo "{{\\"f\\": {LIE}}} {{\\"f\\": $1}}"', rule=JSON)  # fmt: skip
attack("json_same_key", "Gives two values under one name in its JSON", EITHER,
       f'echo "{{\\"f\\": {LIE}, \\"f\\": $1}}"', rule=JSON)  # fmt: skip
attack("json_deep", "Prints JSON nested 100,000 deep", FAILED, "head -c 100000 /dev/zero | tr '\\0' '['", rule=JSON)
attack("json_deep_value", "Gives a value nested 100,000 deep", FAILED,
       "printf '{\"f\":'; head -c 100000 /dev/zero | tr '\\0' '['; head -c 100000 /dev/zero | tr '\\0' ']'; echo '}'",
       rule=JSON)  # fmt: skip
attack("json_400_digits", "Gives an integer of 400 digits", EITHER,
       "printf '{\"f\": '; head -c 400 /dev/zero | tr '\\0' 9; echo '}'", rule=JSON, value=INFINITY)  # fmt: skip
attack("json_9000_digits", "Gives an integer of 9,000 digits, more than Python reads", EITHER,
       "printf '{\"f\": '; head -c 9000 /dev/zero | tr '\\0' 9; echo '}'", rule=JSON, value=INFINITY)  # fmt: skip

# Regular expressions

attack("regex_no_match", "Prints nothing that matches", FAILED, "echo none", rule=REGEX)
attack("regex_lie_first", "Matches twice; the last one counts", VALUE, f'echo f={LIE}; echo "f=$1"',
       rule=REGEX)  # fmt: skip
attack("regex_catastrophe", "Prints what the regular expression takes for ever to refuse", FAILED,
       "printf f=; head -c 60 /dev/zero | tr '\\0' 1; echo x", rule=SLOW_REGEX, needs=TIMEOUT)  # fmt: skip

# Files

attack("file_missing", "Does not write its file", FAILED, "exit 0", **OWN_FILE)
attack("file_stale", "Does not write its file, where that of another evaluation lies", FAILED, "exit 0", rule=FILE,
       refusable=True)  # fmt: skip
attack("file_shared", "Writes its file late, into a folder that evaluations share", EITHER,
       'echo "$1" > out.txt; sleep 0.1', rule=FILE, refusable=True)  # fmt: skip
attack("file_late", "Leaves it to a child in the background to write its file", EITHER,
       '(sleep 0.2; echo "$1" > out.txt) >&- 2>&- & exit 0', **OWN_FILE)  # fmt: skip
attack("file_rewritten", "A child in the background writes a second value into its file", EITHER,
       f'echo "$1" > out.txt; (sleep 0.05; echo {LIE} > out.txt) >&- 2>&- & exit 0', **OWN_FILE)  # fmt: skip
attack("file_empty", "Leaves its file empty", FAILED, ": > out.txt", **OWN_FILE)
attack("file_is_folder", "Makes a folder where its file is expected", FAILED, "mkdir out.txt", **OWN_FILE)
attack("file_is_pipe", "Makes a pipe where its file is expected", FAILED, "mkfifo out.txt", **OWN_FILE)
attack("file_is_device", "Makes its file a link to /dev/zero", FAILED, "ln -s /dev/zero out.txt", **OWN_FILE)
attack("file_is_loop", "Makes its file a link to itself", FAILED, "ln -s out.txt out.txt", **OWN_FILE)
attack("file_is_link", "Makes its file a link to another file", VALUE,
       'echo "$1" > other.txt; ln -s other.txt out.txt', **OWN_FILE)  # fmt: skip
attack("file_huge", "Makes its file a terabyte long, on paper", FAILED, "truncate -s 1T out.txt", **OWN_FILE)
attack("file_unreadable", "Takes all rights from its file", EITHER, 'echo "$1" > out.txt; chmod 0 out.txt',
       **OWN_FILE)  # fmt: skip
attack("removes_its_folder", "Removes the folder it runs in", FAILED, 'rm -rf "$PWD"', **OWN_FILE)
attack("removes_its_folder_and_fails", "Removes the folder it runs in and fails", FAILED, 'rm -rf "$PWD"; exit 1',
       workdir=EACH)  # fmt: skip
attack("locks_its_folder", "Takes all rights from the folder it runs in", EITHER, 'echo "$1" > out.txt; chmod 0 .',
       **OWN_FILE)  # fmt: skip
attack("replaces_its_params", "Overwrites its params.json", VALUE, 'echo {} > params.json; echo "$1"', workdir=EACH)
attack("leaves_pipe_for_output", "Fails, and leaves a pipe where its output is to be kept", FAILED,
       "mkfifo stdout.txt stderr.txt; exit 1", workdir=EACH)  # fmt: skip
attack("leaves_folder_for_output", "Fails, and leaves a folder where its output is to be kept", FAILED,
       "mkdir stdout.txt; exit 1", workdir=EACH)  # fmt: skip
attack("leaves_link_for_output", "Fails, and leaves a link to the run file where its output is to be kept", FAILED,
       "ln -sf ../../run.db stdout.txt; ln -sf ../../run.db stderr.txt; echo lost; echo lost >&2; exit 1",
       workdir=EACH)  # fmt: skip

# Children

attack("child_holds_stdout", "Leaves a child behind that holds stdout open", VALUE,
       'echo "$1"; sleep 600 & exit 0', leaves=True)  # fmt: skip
attack("child_holds_stderr", "Leaves a child behind that holds stderr open", VALUE,
       'echo "$1"; sleep 600 >/dev/null & exit 0', leaves=True)  # fmt: skip
attack("child_prints_later", "Leaves a child behind that prints another value", EITHER,
       f'echo "$1"; (sleep 0.3; echo {LIE}) & exit 0', leaves=True)  # fmt: skip
attack("child_prints_for_ever", "Leaves a child behind that prints without end", EITHER,
       'echo "$1"; yes & exit 0', leaves=True)  # fmt: skip
attack("child_quiet", "Leaves a child behind that holds no stream", VALUE,
       'echo "$1"; sleep 600 </dev/null >/dev/null 2>&1 & exit 0', leaves=True)  # fmt: skip
attack("child_dead", "Leaves dead children to nobody", VALUE, 'true & true & true & echo "$1"')
attack("daemon_holds_stdout", "Leaves a daemon behind that holds stdout open", VALUE,
       'echo "$1"; setsid sleep 600 & exit 0', leaves=True)  # fmt: skip
attack("daemon_quiet", "Leaves a daemon behind that holds no stream", VALUE,
       'echo "$1"; setsid sleep 600 </dev/null >/dev/null 2>&1 & exit 0', leaves=True)  # fmt: skip
attack("daemon_deaf", "Leaves a daemon behind that ignores signals", VALUE,
       "echo \"$1\"; setsid sh -c 'trap \"\" TERM HUP INT; sleep 600' </dev/null >/dev/null 2>&1 & exit 0",
       leaves=True)  # fmt: skip
attack("daemon_without_environment", "Leaves a daemon behind that has an empty environment", VALUE,
       'echo "$1"; setsid env -i /bin/sleep 600 </dev/null >/dev/null 2>&1 & exit 0', leaves=True)  # fmt: skip
attack("bomb_of_20", "Starts 20 processes that start others, and fails", FAILED,
       "for k in 1 2 3 4 5 6 7 8 9 10; do (sleep 600 & sleep 600) & done; exit 1", leaves=True)  # fmt: skip

# Hangs

attack("hangs", "Sleeps past the timeout", FAILED, "sleep 600", needs=TIMEOUT)
attack(
    "hangs_after_value", "Prints its value and sleeps past the timeout", FAILED, 'echo "$1"; sleep 600', needs=TIMEOUT
)
attack(
    "hangs_deaf",
    "Ignores SIGTERM and hangs",
    FAILED,
    "trap '' TERM HUP INT; while :; do sleep 600; done",
    needs=TIMEOUT,
)
attack("hangs_stopped", "Stops itself", FAILED, "kill -STOP $$", needs=TIMEOUT)
attack("hangs_in_session", "Hangs in a session of its own", FAILED, "exec setsid -w sleep 600", needs=TIMEOUT)
attack("hangs_with_bomb", "Starts 20 processes and hangs", FAILED,
       "for k in 1 2 3 4 5 6 7 8 9 10; do (sleep 600 & sleep 600) & done; wait", needs=TIMEOUT)  # fmt: skip
attack("hangs_busy", "Turns in a circle", FAILED, "while :; do :; done", needs=TIMEOUT)
attack(
    "hangs_at_pipe", "Waits for a pipe that nobody opens", FAILED, "mkfifo pipe; cat pipe", needs=TIMEOUT, workdir=EACH
)

# Input

attack("reads_stdin", "Reads from stdin before it prints its value", VALUE, 'cat; echo "$1"')
attack("reads_terminal", "Asks the terminal", FAILED, "head -n 1 < /dev/tty")

# The program file itself: where it misbehaves, another file is called


def _no_first_line(path: Path) -> None:
    path.write_text('echo "$1"\n')
    path.chmod(0o755)


def _not_executable(path: Path) -> None:
    path.write_text(FIRST_LINE + 'echo "$1"\n')
    path.chmod(0o644)


def _no_interpreter(path: Path) -> None:
    path.write_text("#!/no/such/interpreter\n")
    path.chmod(0o755)


def _empty(path: Path) -> None:
    path.write_bytes(b"")
    path.chmod(0o755)


def _binary_garbage(path: Path) -> None:
    path.write_bytes(b"\x7fELF" + bytes(range(256)))
    path.chmod(0o755)


def _self_removing(path: Path) -> None:
    path.write_text(FIRST_LINE + 'rm -f "$0"; echo "$1"\n')
    path.chmod(0o755)


SPOILT = {
    "no_first_line": ("Is a script without a first line that names its interpreter", FAILED, _no_first_line),
    "not_executable": ("Is not executable", FAILED, _not_executable),
    "no_interpreter": ("Names an interpreter that does not exist", FAILED, _no_interpreter),
    "empty": ("Is an empty file", FAILED, _empty),
    "binary_garbage": ("Is a binary that the system cannot load", FAILED, _binary_garbage),
    "folder": ("Is a folder", FAILED, Path.mkdir),
    "missing": ("Does not exist", FAILED, lambda path: None),
    "dangling": ("Is a link to nothing", FAILED, lambda path: path.symlink_to("nowhere")),
    "loop": ("Is a link to itself", FAILED, lambda path: path.symlink_to(path.name)),
    "self_removing": ("Removes itself when it is called", EITHER, _self_removing),
    "busy": ("Is open for writing in another process", EITHER, lambda path: None),
}
for _name, (_wrong, _makes, _) in SPOILT.items():
    attack(f"program_{_name}", _wrong, _makes, 'echo "$1"', file=_name)

# The process of the search is killed while its programs are at these

for _name, _wrong, _body in (
    ("orphaned", "Sleeps, while the process of the search is killed", "sleep 600"),
    ("orphaned_deaf", "Ignores signals, while the process of the search is killed", "trap '' TERM HUP INT; sleep 600"),
    ("orphaned_in_session", "Sleeps in a session of its own, while the process of the search is killed",
     "setsid sleep 600; sleep 600"),
):  # fmt: skip
    attack(
        _name,
        _wrong,
        ENDS_TOO,
        f": > {BEGUN}; {_body}",
        needs=PROCESS,
        ways=(*SANDBOXES, COMMAND_LINE),
        owner_dies=True,
    )

# Names that mean something to commands

for _name in ("id", "params", "here"):
    attack(f"variable_named_{_name}", f"Is called with a variable that is named {_name}", VALUE, 'echo "$1"',
           arguments=(f"{{{_name}}}", "{n}"), names=(_name, "n"), refusable=True)  # fmt: skip


def write(case: Program, folder: Path) -> str:
    """Write the program of a case into a folder; returns how it is called."""
    honest_program = folder / "program"
    honest_program.write_text(case.script())
    honest_program.chmod(honest_program.stat().st_mode | stat.S_IXUSR)
    if case.file is None:
        return "./program"
    for n in range(12):
        path = folder / f"program{n}"
        if n % 4 == 1 and case.file != "busy":
            SPOILT[case.file][2](path)
        else:
            path.write_text(case.script())
            path.chmod(0o755)
    return "./program{n}"
