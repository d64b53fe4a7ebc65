"""Devices that are C libraries: the function table, what it is shown, and everything that C can do wrong."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import bittrue
from bittrue.conformance.devices import library
from bittrue.conformance.devices.opening import open_device
from support.compilers import compiler
from support.device_cases import case, first_and_next, is_right, unreadable_case
from support.runtimes import not_emulated

GCC = compiler("gcc")
needs_gcc = pytest.mark.skipif(GCC is None, reason="no gcc here: the C library cannot be built")

# What RESHAPE runs into: MODE is set by the compiler's command line.
SOURCE = r"""
#include <bittrue_device.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int load(const bittrue_model *model, void **state, char *text, size_t size) {
  *state = (void *)(strcmp(model->operator_name, "RESHAPE") ? NULL : model);
  if (*state && MODE == 7) return snprintf(text, size, "not \033[31m here"), BITTRUE_REFUSED;
  if (*state && MODE == 8) { memset(text, 'x', size); return BITTRUE_ERROR; }
  if (*state && MODE == 9) abort();
  if (!strcmp(model->operator_name, "ADD")) {
    /* What the model says, in the order of the header. */
    const bittrue_tensor *a = &model->tensors[0], *y = &model->tensors[model->tensor_count - 1];
    long long multiplier = 0;
    const char *activation = "";
    for (size_t i = 0; i < model->parameter_count; i++) {
      const bittrue_parameter *found = &model->parameters[i];
      if (!strcmp(found->name, "step0.multiplier")) multiplier = (long long)found->integers[0];
      if (!strcmp(found->name, "attribute.activation")) activation = found->text;
    }
    snprintf(text, size, "%s|%s|%d|%d|%s|%d|%lld|%.9g|%lld|%zu|%s|%d|%lld|%s|%zu|%d", model->identity, a->name,
             a->role, a->position, a->type, a->rank, (long long)a->shape[1], a->scales[0],
             (long long)a->zero_points[0], a->bytes, y->name, y->role, multiplier, activation,
             model->content_bytes, model->description[0] == '{');
    return BITTRUE_REFUSED;
  }
  return BITTRUE_OK;
}

static int run(void *state, const bittrue_input *inputs, size_t input_count, const bittrue_output *outputs,
               size_t output_count, char *text, size_t size) {
  unsigned char *to = outputs[0].data;
  if (input_count != 1 || output_count != 1 || inputs[0].bytes != outputs[0].bytes)
    return snprintf(text, size, "bad counts"), BITTRUE_ERROR;
  if (state) switch (MODE) {
    case 1: *(volatile int *)8 = 1; break;
    case 2: exit(0);
    case 3: for (;;) {}
    case 4: to[outputs[0].bytes] = 0; to[-1] = 0; break;
    case 5: return 42;
    case 6: return snprintf(text, size, "the fan is broken"), BITTRUE_ERROR;
    case 10: return BITTRUE_OK; /* nothing written */
    case 11: printf("{\"status\": 1}\n"); fflush(stdout); break;
  }
  memcpy(to, inputs[0].data, outputs[0].bytes);
  if (state && MODE == 12) memset((void *)inputs[0].data, 7, inputs[0].bytes);
  return BITTRUE_OK;
}

static void unload(void *state) {
  if (state && MODE == 13) abort();
}

static const bittrue_device table = {
    BITTRUE_DEVICE_ABI + (MODE == 20), sizeof(bittrue_device), "planted, 1.0", "tflite",
    MODE == 21 ? NULL : load, run, unload,
};

const bittrue_device *bittrue_device_table(void) { return MODE == 22 ? NULL : &table; }
"""

MISBEHAVIOUR = {
    1: ("crashed", "SIGSEGV"),
    2: ("crashed", "exit code 0"),
    3: ("timed out", "more than 2 s"),
    4: ("unreadable", "output 'output0'"),
    5: ("raised", "run returned 42, which is no status"),
    6: ("raised", "the fan is broken"),
    7: ("refused", "not \\x1b[31m here"),
    8: ("raised", "xxxx"),
    9: ("crashed", "SIGABRT"),
    13: ("crashed", "SIGABRT"),
}


def build(folder: Path, mode: int, source: str = SOURCE) -> Path:
    target = folder / f"device{mode}.so"
    include = Path(library.device_header()).parent
    command = [GCC or "gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-DMODE={mode}"]
    command += ["-I", str(include), "-x", "c", "-", "-o", str(target)]
    subprocess.run(command, input=source, text=True, check=True)
    return target


@pytest.mark.in_turns(2)
@needs_gcc
@pytest.mark.parametrize("mode", MISBEHAVIOUR)
def test_misbehaviour_is_an_answer_and_the_next_case_works(mode: int, tmp_path: Path) -> None:
    status, text = MISBEHAVIOUR[mode]
    device = open_device(f"library:{build(tmp_path, mode)}?timeout={2 if mode == 3 else 30}")
    first, second = first_and_next(device)
    device.close()
    assert (first.status, dict(first.outputs)) == (status, {}), first
    assert text in first.text
    assert is_right(case("SQUEEZE"), second), second


@needs_gcc
def test_right_answers(tmp_path: Path) -> None:
    for mode in (0, 11, 12):
        device = open_device(f"library:{build(tmp_path, mode)}")
        assert (device.title, device.reads) == ("planted, 1.0", ("tflite",))
        first, second = first_and_next(device)
        device.close()
        assert is_right(case("RESHAPE"), first), first
        assert is_right(case("SQUEEZE"), second)


@needs_gcc
def test_what_is_not_written_changes_from_run_to_run(tmp_path: Path) -> None:
    device = open_device(f"library:{build(tmp_path, 10)}")
    one, two = device.answer(case("RESHAPE")), device.answer(case("RESHAPE"))
    device.close()
    assert one.outputs["output0"].tobytes() != two.outputs["output0"].tobytes()


@needs_gcc
def test_what_a_library_is_shown(tmp_path: Path) -> None:
    device = open_device(f"library:{build(tmp_path, 0)}")
    asked = case("ADD")
    answer = device.answer(asked)
    unread = device.answer(unreadable_case())
    device.close()
    assert answer.status == "refused"
    first = asked.model.graph.tensors[0]
    assert first.quantization is not None
    arithmetic = asked.model.prepare("litert").plan.steps[0]
    words = [asked.identity, "input0", 0, 0, "s8", len(first.shape), first.shape[1]]
    words += [f"{float(first.quantization.scales[0]):.9g}", int(first.quantization.zero_points[0])]
    words += [int(np.prod(first.shape)), "output0", 2, int(arithmetic.arrays["multiplier"][0]), "none"]
    words += [len(asked.content), 1]
    assert answer.text == "|".join(map(str, words))
    # No tensor but the input is known: there is no room for an output.
    assert (unread.status, unread.text) == ("raised", "bad counts")


@needs_gcc
@pytest.mark.parametrize(("mode", "text"), [(20, "its table says ABI 2"), (21, "missing"), (22, "NULL")])
def test_tables_that_are_none(mode: int, text: str, tmp_path: Path) -> None:
    with pytest.raises(bittrue.UnsupportedError, match=text):
        open_device(f"library:{build(tmp_path, mode)}")


@needs_gcc
def test_files_that_are_no_devices(tmp_path: Path) -> None:
    other = build(tmp_path, 1, "int nothing(void) { return MODE; }")
    with pytest.raises(bittrue.UnsupportedError, match="exports no function bittrue_device_table"):
        open_device(f"library:{other}")
    dangling = build(
        tmp_path, 2, "int missing(void); const void *bittrue_device_table(void) { return (void *)(long)missing(); }"
    )
    with pytest.raises(bittrue.UnsupportedError, match=r"cannot be loaded: .*missing"):
        open_device(f"library:{dangling}")
    crashing = build(tmp_path, 3, "__attribute__((constructor)) static void start(void) { __builtin_trap(); }")
    with pytest.raises(bittrue.UnsupportedError, match="died of SIG"):
        open_device(f"library:{crashing}")
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(bittrue.UnsupportedError, match="cannot be loaded"):
        open_device(f"library:{tmp_path / 'text.so'}")


@not_emulated
@needs_gcc
def test_the_header_and_ctypes_agree(tmp_path: Path) -> None:
    """Sizes and places of every field, as the compiler has them."""
    names = {
        "bittrue_tensor": library._Tensor,
        "bittrue_parameter": library._Parameter,
        "bittrue_model": library._Model,
    }
    names |= {"bittrue_input": library._Buffer, "bittrue_output": library._Buffer, "bittrue_device": library._Table}
    lines, expected = [], []
    for name, structure in names.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        expected.append(f"{name} {library.ctypes.sizeof(structure)}")
        for field, *_ in structure._fields_:
            lines.append(f'printf("{name}.{field} %zu\\n", offsetof({name}, {field}));')
            expected.append(f"{name}.{field} {getattr(structure, field).offset}")
    source = "#include <bittrue_device.h>\n#include <stdio.h>\nint main(void) {" + "\n".join(lines) + "return 0;}"
    include = Path(bittrue.device_header()).parent
    for program, language in ((GCC, "c"), (compiler("g++"), "c++")):
        if program is None:
            continue
        target = tmp_path / f"sizes-{language}"
        command = [
            program,
            "-Wall",
            "-Werror",
            "-pedantic",
            "-x",
            language,
            "-",
            "-I",
            str(include),
            "-o",
            str(target),
        ]
        subprocess.run(command, input=source, text=True, check=True)
        assert subprocess.run([target], capture_output=True, text=True, check=True).stdout.splitlines() == expected
