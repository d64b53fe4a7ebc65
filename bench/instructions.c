// A plugin of QEMU's user emulation that says at the end, on standard error, how many instructions were executed. QEMU's own header
// is not in its packages: what it declares of the interface (version 1) stands here.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct qemu_plugin_tb;
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, void (*translated)(uint64_t id, struct qemu_plugin_tb* block));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb* block,
                                          void (*executed)(unsigned processor, void* data), int flags, void* data);
void qemu_plugin_register_atexit_cb(uint64_t id, void (*ended)(uint64_t id, void* data), void* data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb* block);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

static uint64_t instructions;

static void executed(unsigned processor, void* count) {
  (void)processor;
  __atomic_fetch_add(&instructions, (uint64_t)(uintptr_t)count, __ATOMIC_RELAXED);
}

static void translated(uint64_t id, struct qemu_plugin_tb* block) {
  (void)id;
  qemu_plugin_register_vcpu_tb_exec_cb(block, executed, 0, (void*)(uintptr_t)qemu_plugin_tb_n_insns(block));
}

static void ended(uint64_t id, void* data) {
  (void)id;
  (void)data;
  fprintf(stderr, "instructions %llu\n", (unsigned long long)instructions);
}

__attribute__((visibility("default"))) int qemu_plugin_install(uint64_t id, const void* information, int count,
                                                               char** words) {
  (void)information;
  (void)count;
  (void)words;
  qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
  qemu_plugin_register_atexit_cb(id, ended, NULL);
  return 0;
}
