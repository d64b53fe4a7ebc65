// The Python module bittrue._native: whole plans as programs, and the cores below them for tests.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <stdexcept>
#include <string>

#include "arithmetic/circular.h"
#include "arithmetic/elementary.h"
#include "arithmetic/wide_elementary.h"
#include "core/program.h"
#include "operators/core/registry.h"
#include "rules/rescale.h"

namespace nb = nanobind;

namespace bittrue {
namespace {

using Values = nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstValues = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Reals = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using WideReals = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstReals = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstWideReals = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

rules::RescaleRule find_rescale(const std::string& name) {
  rules::RescaleRule found{};
  if (!rules::find_rule(name, found)) throw std::invalid_argument("no native rescale rule is called '" + name + "'");
  return found;
}

void rescale(const std::string& rule, const ConstValues& acc, int64_t multiplier, int exponent, double factor,
             const Values& out, float addend, float second) {
  const rules::RescaleFunction function = rules::kRescale[static_cast<int>(find_rescale(rule))].function;
  if (function == nullptr) throw std::invalid_argument("the rule gives real numbers: ask for stored integers");
  if (acc.shape(0) != out.shape(0)) throw std::invalid_argument("acc and out must have the same length");
  const rules::Multiplier prepared{multiplier, exponent, factor, addend, second};
  const int64_t* source = acc.data();
  int64_t* target = out.data();
  const size_t count = acc.shape(0);
  nb::gil_scoped_release release;
  for (size_t i = 0; i < count; ++i) target[i] = function(source[i], prepared);
}

void requantize(const std::string& rule, const std::string& store, const ConstValues& acc, int64_t multiplier,
                int exponent, double factor, int32_t zero_point, int32_t low, int32_t high, const Values& out) {
  rules::Requantize prepared;
  prepared.rescale = find_rescale(rule);
  if (!rules::find_rule(store, prepared.store) || rules::is_real(prepared.store) != rules::is_real(prepared.rescale)) {
    throw std::invalid_argument("no native store rule '" + store + "' for '" + rule + "'");
  }
  if (acc.shape(0) != out.shape(0)) throw std::invalid_argument("acc and out must have the same length");
  prepared.multipliers = {{multiplier, exponent, factor}};
  prepared.zero_point = zero_point;
  prepared.low = low;
  prepared.high = high;
  for (size_t i = 0; i < acc.shape(0); ++i) out.data()[i] = rules::requantize(prepared, acc.data()[i], 0);
}

// The functions of arithmetic/elementary.h and arithmetic/circular.h by name; those of one argument ignore the second.
// `joined` where products that are joined to sums make another function.
struct ElementaryRow {
  const char* name;
  float (*function)(float x, float y);
  float (*joined)(float x, float y) = nullptr;
};

constexpr ElementaryRow kElementary[] = {
    {"acos", [](float x, float) { return arithmetic::acos(x); },
     [](float x, float) { return arithmetic::acos<true>(x); }},
    {"acosh", [](float x, float) { return arithmetic::acosh(x); },
     [](float x, float) { return arithmetic::acosh<true>(x); }},
    {"asin", [](float x, float) { return arithmetic::asin(x); },
     [](float x, float) { return arithmetic::asin<true>(x); }},
    {"asinh", [](float x, float) { return arithmetic::asinh(x); },
     [](float x, float) { return arithmetic::asinh<true>(x); }},
    {"atan", [](float x, float) { return arithmetic::atan(x); },
     [](float x, float) { return arithmetic::atan<true>(x); }},
    {"atan2", [](float x, float y) { return arithmetic::atan2(x, y); },
     [](float x, float y) { return arithmetic::atan2<true>(x, y); }},
    {"atanh", [](float x, float) { return arithmetic::atanh(x); },
     [](float x, float) { return arithmetic::atanh<true>(x); }},
    {"cos", [](float x, float) { return arithmetic::cos(x); }, [](float x, float) { return arithmetic::cos<true>(x); }},
    {"cosh", [](float x, float) { return arithmetic::cosh(x); },
     [](float x, float) { return arithmetic::cosh<true>(x); }},
    {"erfc", [](float x, float) { return arithmetic::erfc(x); },
     [](float x, float) { return arithmetic::erfc<true>(x); }},
    {"exp", [](float x, float) { return arithmetic::exp(x); }},
    {"expm1", [](float x, float) { return arithmetic::expm1(x); },
     [](float x, float) { return arithmetic::expm1<true>(x); }},
    {"log", [](float x, float) { return arithmetic::log(x); }, [](float x, float) { return arithmetic::log<true>(x); }},
    {"log1p", [](float x, float) { return arithmetic::log1p(x); },
     [](float x, float) { return arithmetic::log1p<true>(x); }},
    {"logistic", [](float x, float) { return arithmetic::logistic(x); }},
    {"power", [](float x, float y) { return arithmetic::power(x, y); },
     [](float x, float y) { return arithmetic::power<true>(x, y); }},
    {"sin", [](float x, float) { return arithmetic::sin(x); }, [](float x, float) { return arithmetic::sin<true>(x); }},
    {"sinh", [](float x, float) { return arithmetic::sinh(x); },
     [](float x, float) { return arithmetic::sinh<true>(x); }},
    {"tan", [](float x, float) { return arithmetic::tan(x); }, [](float x, float) { return arithmetic::tan<true>(x); }},
    {"tanh", [](float x, float) { return arithmetic::tanh(x); },
     [](float x, float) { return arithmetic::tanh<true>(x); }},
};

void elementary(const std::string& name, const ConstReals& x, const ConstReals& y, const Reals& out, bool joined) {
  const auto row = std::find_if(std::begin(kElementary), std::end(kElementary),
                                [&](const ElementaryRow& candidate) { return name == candidate.name; });
  if (row == std::end(kElementary)) throw std::invalid_argument("no native function is called '" + name + "'");
  if (x.shape(0) != out.shape(0) || y.shape(0) != out.shape(0)) {
    throw std::invalid_argument("x, y and out must have the same length");
  }
  if (joined && row->joined == nullptr) throw std::invalid_argument("'" + name + "' is the same when joined");
  const auto function = joined ? row->joined : row->function;
  const float *first = x.data(), *second = y.data();
  float* target = out.data();
  const size_t count = out.shape(0);
  nb::gil_scoped_release release;
  for (size_t i = 0; i < count; ++i) target[i] = function(first[i], second[i]);
}

// The functions of arithmetic/wide_elementary.h by name.
struct WideElementaryRow {
  const char* name;
  double (*function)(double x, double y);
};

constexpr WideElementaryRow kWideElementary[] = {
    {"cos", [](double x, double) { return arithmetic::wide::cos(x); }},
    {"exp", [](double x, double) { return arithmetic::wide::exp(x); }},
    {"log", [](double x, double) { return arithmetic::wide::log(x); }},
    {"power", [](double x, double y) { return arithmetic::wide::power(x, y); }},
    {"sin", [](double x, double) { return arithmetic::wide::sin(x); }},
    {"tanh", [](double x, double) { return arithmetic::wide::tanh(x); }},
};

void wide_elementary(const std::string& name, const ConstWideReals& x, const ConstWideReals& y, const WideReals& out) {
  const auto row = std::find_if(std::begin(kWideElementary), std::end(kWideElementary),
                                [&](const WideElementaryRow& candidate) { return name == candidate.name; });
  if (row == std::end(kWideElementary)) throw std::invalid_argument("no native function is called '" + name + "'");
  if (x.shape(0) != out.shape(0) || y.shape(0) != out.shape(0)) {
    throw std::invalid_argument("x, y and out must have the same length");
  }
  for (size_t i = 0; i < out.shape(0); ++i) out.data()[i] = row->function(x.data()[i], y.data()[i]);
}

// An array in C order by Python's buffer protocol, which takes a third of the time of nb::ndarray and does not mind arrays
// that cannot be written.
class Buffer {
 public:
  Buffer() = default;
  ~Buffer() {
    if (held_) PyBuffer_Release(&view_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // False, and nothing is held, when `value` is no such array; once.
  bool take(nb::handle value, bool to_write) {
    held_ = PyObject_GetBuffer(value.ptr(), &view_, PyBUF_ND | PyBUF_FORMAT | (to_write ? PyBUF_WRITABLE : 0)) == 0;
    if (!held_ && PyErr_ExceptionMatches(PyExc_MemoryError) != 0) throw nb::python_error();
    if (!held_) PyErr_Clear();
    return held_;
  }
  void must_take(nb::handle value, bool to_write) {
    if (!take(value, to_write)) throw nb::type_error("expected an array in C order");
  }

  void* data() const { return view_.buf; }
  int64_t bytes() const { return view_.len; }
  size_t axes() const { return static_cast<size_t>(view_.ndim); }
  int64_t size(size_t axis) const { return view_.shape[axis]; }
  Type type() const {
    const char* format = view_.format == nullptr ? "B" : view_.format;
    if (format[0] == '\0' || format[1] != '\0') return Type::other;
    switch (format[0]) {
      case '?': return Type::boolean;
      case 'b': return Type::s8;
      case 'B': return Type::u8;
      case 'h': return Type::s16;
      case 'H': return Type::u16;
      case 'i': return Type::s32;
      case 'I': return Type::u32;
      case 'l':
      case 'q': return view_.itemsize == 8 ? Type::s64 : Type::s32;
      case 'L':
      case 'Q': return view_.itemsize == 8 ? Type::u64 : Type::u32;
      case 'e': return Type::f16;  // binary16; bfloat16 has no letter
      case 'f': return Type::f32;
      case 'd': return Type::f64;
      default: return Type::other;
    }
  }

 private:
  Py_buffer view_{};
  bool held_ = false;
};

// An array as NumPy lays it out, which is part of its binary interface. The buffer protocol takes ten times as long.
struct ArrayFields {
  PyObject head;
  void* data;
  int axes;
  const Py_ssize_t* shape;
  const Py_ssize_t* strides;
  PyObject* base;
  PyObject* type;
  int flags;
  static constexpr int kPlain = 0x101;  // in C order, aligned
};

const ArrayFields& fields_of(nb::handle array) { return *reinterpret_cast<const ArrayFields*>(array.ptr()); }

// Whether an array in C order lies in memory like that here.
bool has_fields(nb::handle array) {
  Buffer buffer;
  buffer.must_take(array, true);
  const ArrayFields& fields = fields_of(array);
  bool same = fields.data == buffer.data() && fields.axes == static_cast<int>(buffer.axes());
  for (size_t axis = 0; same && axis < buffer.axes(); ++axis) same = fields.shape[axis] == buffer.size(axis);
  return same && nb::getattr(array, "dtype").is(fields.type) &&
         (fields.flags & ArrayFields::kPlain) == ArrayFields::kPlain;
}

// The thread that uses the buffers of a program asks for them again: from a callback, or from a signal's handler.
struct TurnReentered : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The arrays of a plan, kept alive while a program is built from them.
// nanobind's own conversions to strings and vectors end the process when memory runs out (they are noexcept): these throw.
std::string read_text(nb::handle value) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
  if (data == nullptr) throw nb::python_error();
  return std::string(data, static_cast<size_t>(size));
}

// False when it is no sequence of such integers.
template <class Integer>
bool try_integers(nb::handle value, std::vector<Integer>& list) {
  if (PySequence_Check(value.ptr()) == 0 || nb::isinstance<nb::str>(value)) return false;
  const Py_ssize_t size = PySequence_Size(value.ptr());
  if (size < 0) throw nb::python_error();
  list.resize(static_cast<size_t>(size));
  for (Py_ssize_t i = 0; i < size; ++i) {
    const nb::object item = nb::steal(PySequence_GetItem(value.ptr(), i));
    if (!item.is_valid()) throw nb::python_error();
    if (!nb::try_cast(item, list[static_cast<size_t>(i)])) return false;
  }
  return true;
}

template <class Integer>
std::vector<Integer> read_integers(nb::handle value) {
  std::vector<Integer> list;
  if (!try_integers(value, list)) throw nb::type_error("expected a sequence of integers");
  return list;
}

// Buffers stay where they are.
using Keep = std::deque<Buffer>;

Array read_array(nb::handle value, Keep& keep) {
  const Buffer& bytes = keep.emplace_back();
  keep.back().must_take(value, false);
  Array array;
  array.type = bytes.type();
  array.data = bytes.data();
  array.count = 1;
  for (size_t axis = 0; axis < bytes.axes(); ++axis) {
    array.shape.push_back(bytes.size(axis));
    array.count *= array.shape.back();
  }
  return array;
}

TensorSpec read_tensor(nb::handle row, Keep& keep) {
  const auto fields = nb::cast<nb::tuple>(row);
  TensorSpec tensor;
  tensor.operand.type = find_type(read_text(fields[0]).c_str());
  tensor.operand.shape = read_integers<int64_t>(fields[1]);
  tensor.operand.elements = 1;
  for (const int64_t size : tensor.operand.shape) {
    if (size < 0 || (size > 0 && tensor.operand.elements > (int64_t{1} << 48) / size)) {
      throw std::invalid_argument("impossible shape");
    }
    tensor.operand.elements *= size;
  }
  const auto home = read_text(fields[2]);
  tensor.home = home == "arena"      ? Home::arena
                : home == "constant" ? Home::constant
                : home == "variable" ? Home::variable
                                     : Home::none;
  tensor.offset = nb::cast<int64_t>(fields[3]);
  const auto stride = nb::cast<int64_t>(fields[4]);
  tensor.operand.row_stride = stride < 0 ? tensor.operand.row_bytes() : stride;
  if (!fields[5].is_none()) {
    const Array value = read_array(fields[5], keep);
    if (keep.back().bytes() != tensor.operand.bytes()) {
      throw std::invalid_argument("a constant does not fit its tensor");
    }
    tensor.operand.constant = value.data;
  }
  tensor.given = nb::cast<bool>(fields[6]);
  tensor.wanted = nb::cast<bool>(fields[7]);
  tensor.root = nb::cast<int>(fields[8]);
  if (type_bytes(tensor.operand.type) == 0) tensor.home = Home::none;
  return tensor;
}

ProgramStep read_step(nb::handle row, Keep& keep) {
  const auto fields = nb::cast<nb::tuple>(row);
  ProgramStep result;
  Step& step = result.step;
  step.name = read_text(fields[0]);
  for (const auto& [slot, rule] : nb::cast<nb::dict>(fields[1])) {
    step.rules[read_text(slot)] = read_text(rule);
  }
  for (const auto& [key, value] : nb::cast<nb::dict>(fields[2])) {
    const auto name = read_text(key);
    std::vector<int64_t> list;
    int64_t integer = 0;
    uint64_t large = 0;
    if (nb::isinstance<nb::str>(value)) {
      step.texts[name] = read_text(value);
    } else if (nb::isinstance<nb::float_>(value)) {
      step.reals[name] = nb::cast<double>(value);
    } else if (nb::try_cast(value, integer)) {
      step.integers[name] = {integer};
    } else if (nb::try_cast(value, large)) {
      step.texts[name] = std::to_string(large);
    } else if (try_integers(value, list)) {
      step.integers[name] = list;
    }
  }
  for (const auto& [key, value] : nb::cast<nb::dict>(fields[3])) {
    step.arrays[read_text(key)] = read_array(value, keep);
  }
  result.inputs = read_integers<int>(fields[4]);
  result.outputs = read_integers<int>(fields[5]);
  if (!fields[6].is_none()) {
    step.bounded = true;
    if (!nb::try_cast(fields[6], step.magnitude)) step.magnitude = std::numeric_limits<int64_t>::max();
  }
  step.wraps = nb::cast<bool>(fields[7]);
  step.work = nb::cast<int64_t>(fields[8]);
  if (!fields[9].is_none()) {
    ProgramStep then = read_step(fields[9], keep);
    step.then = std::make_shared<Step>(std::move(then.step));
    result.then_inputs = std::move(then.inputs);
  }
  return result;
}

void check_bytes(const Operand& operand, const Buffer& buffer) {
  if (buffer.bytes() != operand.bytes()) throw std::invalid_argument("the array does not fit the tensor");
}

// Runs the handlers of signals that have come, which Python does in its main thread alone. True, with Python's error set,
// when one of them raises.
bool python_signals() {
  if (syscall(SYS_gettid) != getpid()) return false;
  const nb::gil_scoped_acquire acquire;
  return PyErr_CheckSignals() != 0;
}

// How often other threads have asked for the end of all runs of a session.
using Interrupts = nb::ndarray<const int64_t, nb::shape<1>, nb::c_contig, nb::device::cpu>;

void new_program(Program* self, const nb::list& tensors, const nb::list& steps, int64_t arena, int threads,
                 const nb::str& isa, const Interrupts& interrupts) {
  Keep keep;
  std::vector<TensorSpec> specs;
  std::vector<ProgramStep> list;
  for (const nb::handle row : tensors) specs.push_back(read_tensor(row, keep));
  for (const nb::handle row : steps) list.push_back(read_step(row, keep));
  if (arena < 0 || threads < 1) throw std::invalid_argument("the arena or the number of threads is negative");
  const std::string set = read_text(isa);
  try {
    nb::gil_scoped_release release;
    new (self) Program(std::move(specs), std::move(list), arena, threads, set, interrupts.data());
  } catch (const Stopped&) {
    throw nb::python_error();  // nothing but a signal stops it
  }
}

using Bound = std::deque<std::pair<int, Buffer>>;

// (tensor, array) rows that fit the tensors.
Bound read_bound(const Program& program, const nb::list& rows, bool to_write) {
  Bound bound;
  for (const nb::handle row : rows) {
    const auto fields = nb::cast<nb::tuple>(row);
    auto& [tensor, buffer] = bound.emplace_back();
    tensor = nb::cast<int>(fields[0]);
    buffer.must_take(fields[1], to_write);
    check_bytes(program.operand(tensor), buffer);
  }
  return bound;
}

// Without the GIL.
template <class Function>
void without_gil(const Function& function) {
  try {
    nb::gil_scoped_release release;
    function();
  } catch (const StepStopped& stopped) {
    if (stopped.reason == Stop::Reason::signal) throw nb::python_error();
    throw;
  } catch (const Reentered&) {
    throw TurnReentered("the thread is using the buffers already");
  }
}

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int64_t kNow = -1;

// Takes the turn; a wait in vain ends like a run.
void take(Turn& turn, double deadline, const int64_t* interrupts, int64_t seen) {
  const Stop::Reason reason = turn.take(deadline, interrupts, seen);
  if (reason != Stop::Reason::none) throw StepStopped(-1, reason);
}

// What the only caller does with the buffers, given the interrupts that it has seen. The variables are as before when it
// ends inside of a run.
template <class Function>
void in_turn(Program& program, double deadline, int64_t seen, const Function& function) {
  // The run begins here: with large inputs it takes a while until the first step.
  if (seen < 0) seen = __atomic_load_n(program.interrupts(), __ATOMIC_RELAXED);
  without_gil([&] {
    take(program.turn(), deadline, program.interrupts(), seen);
    struct Given {
      Program& program;
      ~Given() {
        program.undo();
        program.turn().give();
      }
    } given{program};
    function(seen);
  });
}

// The whole life of a run by its only caller. Variables are as before when it is not finished.
template <class Before, class After>
void run_alone(Program& program, int steps, double deadline, int64_t seen, const Before& before, const After& after) {
  in_turn(program, deadline, seen, [&](int64_t interrupts) {
    before();
    program.keep();
    program.begin(deadline, interrupts);
    program.run(0, steps);
    program.forget();
    after();
  });
}

void lend_or_write(Program& program, int tensor, void* value) {
  if (!program.lend(tensor, value)) program.write(tensor, value);
}

void write(Program& program, const Bound& inputs) {
  for (const auto& [tensor, value] : inputs) program.write(tensor, value.data());
}

void read(Program& program, const Bound& outputs) {
  for (const auto& [tensor, value] : outputs) program.read(tensor, value.data());
}

void run(Program& program, int first, int last, double deadline, int64_t seen) {
  without_gil([&] {
    program.begin(deadline, seen);
    program.run(first, last);
  });
}

void move(Program& program, const nb::list& given, const nb::list& wanted) {
  const Bound inputs = read_bound(program, given, false), outputs = read_bound(program, wanted, true);
  nb::gil_scoped_release release;
  write(program, inputs);
  read(program, outputs);
}

void run_whole(Program& program, const nb::list& given, const nb::list& wanted, int steps, double deadline,
               int64_t seen) {
  const Bound inputs = read_bound(program, given, false), outputs = read_bound(program, wanted, true);
  run_alone(
      program, steps, deadline, seen,
      [&] {
        for (const auto& [tensor, value] : inputs) lend_or_write(program, tensor, value.data());
        for (const auto& [tensor, value] : outputs) program.lend(tensor, value.data());
      },
      [&] { read(program, outputs); });
}

// Whether an array is `samples` values of the operand, one after the other along the first axis.
bool fits(const Operand& operand, const Buffer& value, int64_t samples) {
  if (value.type() != operand.type || value.axes() != operand.shape.size()) return false;
  for (size_t axis = 0; axis < value.axes(); ++axis) {
    if (value.size(axis) != operand.shape[axis] * (axis == 0 ? samples : 1)) return false;
  }
  return samples == 1 || value.axes() > 0;
}

// The same for arrays that nobody has looked at, with as little as possible around it: small networks take microseconds.
class Call {
 public:
  // Rows (name, tensor, arguments of `empty`, which are a shape and a dtype) of inputs and outputs.
  Call(Program& program, const nb::list& inputs, const nb::list& outputs, nb::object empty, int steps)
      : program_(program), sources_(inputs.size()), empty_(std::move(empty)), steps_(steps) {
    const nb::object array = empty_(nb::make_tuple(2, 3), "i2");
    array_ = nb::borrow(array.type());
    left_ = !has_fields(array);
    for (const nb::list* rows : {&inputs, &outputs}) {
      for (const nb::handle row : *rows) {
        ports_.push_back({row[0], nb::cast<int>(row[1]), row[2], nb::object(row[2][1])});
        const Operand& operand = program.operand(ports_.back().tensor);
        const auto size = nb::cast<int64_t>(ports_.back().type.attr("itemsize"));
        left_ = left_ || size * operand.elements != operand.bytes();
      }
    }
  }

  // Output name to array; None unless `given` is an array per input in order, or a dictionary of them, which all have the
  // input's type and shape, and all values have a defined result.
  nb::object run(const nb::tuple& given, std::optional<double> deadline) {
    if (left_) return nb::none();
    std::vector<nb::object> values(ports_.size());
    const nb::handle first = given.size() == 1 ? nb::handle(given[0]) : nb::handle();
    const bool named = first.is_valid() && PyDict_CheckExact(first.ptr());
    if ((named ? nb::len(first) : given.size()) != sources_) return nb::none();
    for (size_t i = 0; i < sources_; ++i) {
      const nb::handle array = named ? PyDict_GetItem(first.ptr(), ports_[i].name.ptr()) : nb::handle(given[i]).ptr();
      if (!array.is_valid() || !fits(array, ports_[i])) return nb::none();
      values[i] = nb::borrow(array);
    }
    nb::dict results;
    for (size_t i = sources_; i < ports_.size(); ++i) {
      values[i] = nb::steal(PyObject_Call(empty_.ptr(), ports_[i].kind.ptr(), nullptr));
      if (!values[i].is_valid() || PyDict_SetItem(results.ptr(), ports_[i].name.ptr(), values[i].ptr()) != 0) {
        throw nb::python_error();
      }
      if (!fits(values[i], ports_[i])) throw std::invalid_argument("the array does not fit the tensor");
    }
    const auto data = [&](size_t i) { return fields_of(values[i]).data; };
    try {
      run_alone(
          program_, steps_, deadline.value_or(kNever), kNow,
          [&] {
            for (size_t i = 0; i < sources_; ++i) lend_or_write(program_, ports_[i].tensor, data(i));
            for (size_t i = sources_; i < values.size(); ++i) program_.lend(ports_[i].tensor, data(i));
          },
          [&] {
            for (size_t i = sources_; i < values.size(); ++i) program_.read(ports_[i].tensor, data(i));
          });
    } catch (const StepUndefined&) {
      left_ = true;
      return nb::none();
    }
    return std::move(results);
  }

 private:
  struct Port {
    nb::object name;
    int tensor;
    nb::object kind, type;
  };

  // Whether it is an array of the port's type and shape in C order.
  bool fits(nb::handle array, const Port& port) const {
    if (Py_TYPE(array.ptr()) != reinterpret_cast<PyTypeObject*>(array_.ptr())) return false;
    const ArrayFields& fields = fields_of(array);
    const std::vector<int64_t>& shape = program_.operand(port.tensor).shape;
    return fields.type == port.type.ptr() && fields.axes == static_cast<int>(shape.size()) &&
           std::equal(shape.begin(), shape.end(), fields.shape) &&
           (fields.flags & ArrayFields::kPlain) == ArrayFields::kPlain;
  }

  Program& program_;
  std::vector<Port> ports_;
  size_t sources_;
  nb::object empty_, array_;
  int steps_;
  // To the caller: values without a defined result have been met, which will come again, or arrays lie otherwise.
  bool left_;
};

// Runs of `count` samples, one after the other: `given` has the arrays of the first one, in the order of `inputs`, then
// those of the second one, and so on; or an array per input with all samples along its first axis. `wanted` has one array
// per output, with room for all. How many were done: the first one that does not fit, or whose values have no defined
// result, is left to the caller with those behind it.
size_t run_samples(Program& program, size_t count, const nb::list& given, const nb::list& wanted, nb::handle inputs,
                   nb::handle outputs, int steps, bool from_start, double deadline, int64_t seen) {
  const std::vector<int> sources = read_integers<int>(inputs), targets = read_integers<int>(outputs);
  const size_t each = sources.size();
  const size_t together = given.size() == each ? count : 1;  // samples that an array holds
  if (given.size() * together != count * each || wanted.size() != targets.size()) {
    throw std::invalid_argument("not one per operand");
  }
  const auto item = [](const nb::list& list, size_t i) {
    return nb::handle(PyList_GetItem(list.ptr(), static_cast<Py_ssize_t>(i)));
  };
  std::vector<Buffer> results(targets.size()), values(given.size());
  for (size_t i = 0; i < targets.size(); ++i) {
    results[i].must_take(item(wanted, i), true);
    if (results[i].bytes() != program.operand(targets[i]).bytes() * static_cast<int64_t>(count)) {
      throw std::invalid_argument("the array does not fit the tensors");
    }
  }
  size_t fitting = 0, done = 0;
  while (fitting < values.size() && values[fitting].take(item(given, fitting), false) &&
         fits(program.operand(sources[fitting % each]), values[fitting], static_cast<int64_t>(together))) {
    ++fitting;
  }
  if (each > 0) count = fitting / each * together;
  const auto bytes = [&](int tensor) { return static_cast<size_t>(program.operand(tensor).bytes()); };
  in_turn(program, deadline, seen, [&](int64_t interrupts) {
    try {
      program.begin(deadline, interrupts);
      for (; done < count; ++done) {
        if (from_start) program.reset();
        for (size_t i = 0; i < each; ++i) {
          const auto* data = static_cast<const uint8_t*>(values[done / together * each + i].data());
          program.write(sources[i], data + done % together * bytes(sources[i]));
        }
        program.keep();
        program.run(0, steps);
        program.forget();
        for (size_t i = 0; i < targets.size(); ++i) {
          program.read(targets[i], static_cast<uint8_t*>(results[i].data()) + done * bytes(targets[i]));
        }
      }
    } catch (const StepUndefined&) {
    }
  });
  return done;
}

// `with` takes the turn.
struct Taking {
  Turn& turn;
  double deadline;
  const int64_t* interrupts;
  int64_t seen;
};

std::vector<double> timed(Program& program, int first, int last) {
  if (first < 0 || last < first) throw std::invalid_argument("no such steps");
  std::vector<double> seconds(static_cast<size_t>(last - first));
  without_gil([&] {
    program.begin(kNever, kNow);
    program.run(first, last, seconds.data());
  });
  return seconds;
}

// The best of several short measurements: other programs only ever make it slower.
double peak_multiply_adds(const std::optional<std::string>& isa) {
  const CoreSet cores(isa ? *isa : CoreSet::available().front());
  const PeakMultiplyAdds run = cores.peak_multiply_adds();
  nb::gil_scoped_release release;
  using Clock = std::chrono::steady_clock;
  int64_t rounds = 1000;
  double best = 0;
  for (int repeat = 0; repeat < 20;) {
    const Clock::time_point before = Clock::now();
    const int64_t done = run(rounds);
    const double seconds = std::chrono::duration<double>(Clock::now() - before).count();
    if (seconds < 1e-3) {
      rounds *= 2;
      continue;
    }
    best = std::max(best, static_cast<double>(done) / seconds);
    ++repeat;
  }
  return best;
}

}  // namespace
}  // namespace bittrue

NB_MODULE(_native, module) {
  using namespace bittrue;  // NOLINT: the bindings are about nothing else
  module.doc() = "The native executor: programs made from plans, and the rules' C++ twins.";
  module.def("rescale", &rescale, nb::arg("rule"), nb::arg("acc"), nb::arg("multiplier"), nb::arg("exponent"),
             nb::arg("factor"), nb::arg("out"), nb::arg("addend") = 0.0f, nb::arg("second") = 1.0f,
             "Apply one rescale rule to int64 accumulators; parameters as prepared by bittrue.rules.rescale.");
  module.def("requantize", &requantize, nb::arg("rule"), nb::arg("store"), nb::arg("acc"), nb::arg("multiplier"),
             nb::arg("exponent"), nb::arg("factor"), nb::arg("zero_point"), nb::arg("low"), nb::arg("high"),
             nb::arg("out"), "Apply one rescale rule and one store rule to int64 accumulators.");
  module.def("elementary", &elementary, nb::arg("name"), nb::arg("x"), nb::arg("y"), nb::arg("out"),
             nb::arg("joined") = false,
             "Apply one function of bittrue.arithmetic.elementary or circular; functions of one argument ignore y.");
  module.def("wide_elementary", &wide_elementary, nb::arg("name"), nb::arg("x"), nb::arg("y"), nb::arg("out"),
             "Apply one function of bittrue.arithmetic.wide_elementary; functions of one argument ignore y.");
  nb::list functions;
  for (const ElementaryRow& row : kElementary) functions.append(row.name);
  module.attr("elementary_functions") = nb::tuple(functions);
  nb::list wide_functions;
  for (const WideElementaryRow& row : kWideElementary) wide_functions.append(row.name);
  module.attr("wide_elementary_functions") = nb::tuple(wide_functions);
  nb::list names;
  for (const rules::RescaleRow& row : rules::kRescale) names.append(row.name);
  module.attr("rescale_rules") = nb::tuple(names);
  module.def("available_isas", &CoreSet::available, "Instruction sets that this processor runs, the fastest first.");
  module.def("compiled_isas", &CoreSet::compiled, "Instruction sets in this build.");
  module.def(
      "cores", [](const std::string& isa) { return CoreSet(isa).rows(); }, nb::arg("isa"),
      "(instruction set, core) for every core that programs for `isa` may use.");
  module.def("peak_multiply_adds", &peak_multiply_adds, nb::arg("isa").none() = nb::none(),
             "8-bit multiply-adds per second that one core of this machine does at best with `isa`.");
  module.def("operators", &native_operators, "Stems of the operators with a native kernel.");
  const nb::exception<StepUndefined> undefined(module, "StepUndefined");
  const nb::exception<StepStopped> stopped(module, "StepStopped");
  const nb::exception<TurnReentered> reentered(module, "TurnReentered");
  Stop::signals = &python_signals;
  nb::class_<Taking>(module, "Taking", "A context: somebody's turn.")
      .def("__enter__",
           [](Taking& taking) {
             without_gil([&] { take(taking.turn, taking.deadline, taking.interrupts, taking.seen); });
           })
      .def("__exit__", [](Taking& taking, const nb::args&) { taking.turn.give(); });
  nb::class_<Call>(module, "Call", "Runs of a program by arrays that nobody has looked at.")
      .def(nb::init<Program&, const nb::list&, const nb::list&, nb::object, int>(), nb::arg("program"),
           nb::arg("inputs"), nb::arg("outputs"), nb::arg("empty"), nb::arg("steps"), nb::keep_alive<1, 2>())
      .def("run", &Call::run, nb::arg("given"), nb::arg("deadline").none(),
           "As `Program.run_whole`: name to result; None when what is given is not for it.");
  nb::class_<Turn>(module, "Turn", "A lock that notices when its own thread comes again, and the child of a fork.")
      .def(nb::init<>())
      .def(
          "turn",
          [](Turn& turn, double deadline, const Interrupts& interrupts, int64_t seen) {
            return Taking{turn, deadline, interrupts.data(), seen};
          },
          nb::arg("deadline"), nb::arg("interrupts"), nb::arg("seen"), nb::keep_alive<0, 1>(), nb::keep_alive<0, 3>());
  nb::class_<Program>(module, "Program", "A plan with kernels made, weights packed and buffers placed.")
      .def("__init__", &new_program, nb::arg("tensors"), nb::arg("steps"), nb::arg("arena"), nb::arg("threads"),
           nb::arg("isa"), nb::arg("interrupts"), nb::keep_alive<1, 7>(),
           "Runs end when `interrupts`, an array of one int64, changes.")
      .def("run", &run, nb::arg("first"), nb::arg("last"), nb::arg("deadline"), nb::arg("seen"),
           "Run steps [first, last) until `deadline` (seconds of time.monotonic) has come or interrupts are not `seen` "
           "(-1: what they are now).")
      .def("move", &move, nb::arg("inputs"), nb::arg("outputs"),
           "Write (tensor, array) inputs, read (tensor, array) outputs.")
      .def("run_whole", &run_whole, nb::arg("inputs"), nb::arg("outputs"), nb::arg("steps"), nb::arg("deadline"),
           nb::arg("seen"), "Write inputs, keep the variables, run all steps, read outputs.")
      .def("run_samples", &run_samples, nb::arg("count"), nb::arg("given"), nb::arg("wanted"), nb::arg("inputs"),
           nb::arg("outputs"), nb::arg("steps"), nb::arg("from_start"), nb::arg("deadline"), nb::arg("seen"))
      .def("timed", &timed, nb::arg("first"), nb::arg("last"), "Seconds of each step in [first, last).")
      .def("reset", &Program::reset, "Variables back to their first value.")
      .def("keep", &Program::keep, "Remember the variables at the beginning of a run.")
      .def("undo", &Program::undo, "Bring back the variables of a run that is not finished.")
      .def("forget", &Program::forget, "The run is finished.")
      .def(
          "turn",
          [](Program& program, double deadline, int64_t seen) {
            return Taking{program.turn(), deadline, program.interrupts(), seen};
          },
          nb::arg("deadline"), nb::arg("seen"), nb::keep_alive<0, 1>(),
          "For `with`: the buffers are the caller's until its end. `run_whole` and `Call` take the turn themselves, "
          "everything else is for the holder.")
      .def("note", &Program::note, nb::arg("step"))
      .def_prop_ro("missing", &Program::missing, "(step, reason) for every step without a native kernel.")
      .def_prop_ro("isa", &Program::isa)
      .def_prop_ro("memory", &Program::memory, "Bytes of arena, scratch and constants; packed weights not included.");
}
