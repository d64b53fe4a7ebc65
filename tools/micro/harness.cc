// Runs models on TensorFlow Lite for Microcontrollers, one after the other, as tests/support/micro.py asks for.
//
// Standard input, repeated: u32 size of the model, the model, u32 runs, u32 size of all inputs, the inputs of every run
// in order. Standard output: u8 status (0 fine, 1 allocation failed, 2 invocation failed, 3 the inputs do not fit), then
// for status 0 every output of the last run as u32 size and bytes.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
#include "tensorflow/lite/schema/schema_generated.h"

namespace {

constexpr size_t kAlignment = 64;
alignas(kAlignment) uint8_t arena[64 << 20];

bool read(void* target, size_t count) { return std::fread(target, 1, count, stdin) == count; }
void write(const void* source, size_t count) { std::fwrite(source, 1, count, stdout); }

uint8_t run(tflite::MicroInterpreter& interpreter, const std::vector<uint8_t>& data, uint32_t runs) {
  if (interpreter.AllocateTensors() != kTfLiteOk) return 1;
  size_t at = 0;
  for (uint32_t k = 0; k < runs; ++k) {
    for (size_t i = 0; i < interpreter.inputs_size(); ++i) {
      TfLiteTensor* input = interpreter.input(i);
      if (at + input->bytes > data.size()) return 3;
      std::memcpy(input->data.raw, data.data() + at, input->bytes);
      at += input->bytes;
    }
    if (interpreter.Invoke() != kTfLiteOk) return 2;
  }
  return 0;
}

}  // namespace

int main() {
  static tflite::MicroMutableOpResolver<200> resolver;
#include "resolver.inc"
  uint32_t size, runs, total;
  while (read(&size, 4)) {
    void* model = std::aligned_alloc(kAlignment, (size + kAlignment) / kAlignment * kAlignment);
    if (!read(model, size) || !read(&runs, 4) || !read(&total, 4)) return 1;
    std::vector<uint8_t> data(total);
    if (total && !read(data.data(), total)) return 1;
    {
      tflite::MicroInterpreter interpreter(tflite::GetModel(model), resolver, arena, sizeof arena);
      const uint8_t status = run(interpreter, data, runs);
      write(&status, 1);
      for (size_t i = 0; status == 0 && i < interpreter.outputs_size(); ++i) {
        const TfLiteTensor* output = interpreter.output(i);
        const uint32_t bytes = static_cast<uint32_t>(output->bytes);
        write(&bytes, 4);
        write(output->data.raw, bytes);
      }
    }
    std::fflush(stdout);
    std::free(model);
  }
}
