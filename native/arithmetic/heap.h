// Binary heaps step by step, as arithmetic/heap.py: which of several equal elements comes first depends on every move.
#pragma once

#include <cstdint>

namespace bittrue::arithmetic {

template <class T, class Before>
void rise(T* heap, int64_t hole, int64_t top, T value, const Before& before) {
  for (int64_t parent; hole > top && before(heap[parent = (hole - 1) / 2], value); hole = parent) {
    heap[hole] = heap[parent];
  }
  heap[hole] = value;
}

template <class T, class Before>
void sink(T* heap, int64_t hole, int64_t length, T value, const Before& before) {
  const int64_t top = hole;
  int64_t child = hole;
  while (child < (length - 1) / 2) {
    child = 2 * (child + 1);
    if (before(heap[child], heap[child - 1])) --child;
    heap[hole] = heap[child];
    hole = child;
  }
  if (length % 2 == 0 && child == (length - 2) / 2) {
    child = 2 * (child + 1);
    heap[hole] = heap[child - 1];
    hole = child - 1;
  }
  rise(heap, hole, top, value, before);
}

// One more element after `length` others.
template <class T, class Before>
void push(T* heap, int64_t length, T value, const Before& before) {
  rise(heap, length, 0, value, before);
}

// Takes the first of `length` elements away.
template <class T, class Before>
T pop(T* heap, int64_t length, const Before& before) {
  const T first = heap[0], last = heap[length - 1];
  if (length > 1) sink(heap, 0, length - 1, last, before);
  return first;
}

// The first `count` of the integers [0, total) in the order of `before`, into `heap`.
template <class T, class Before>
void partial_sort(T* heap, int64_t count, int64_t total, const Before& before) {
  for (int64_t i = 0; i < count; ++i) heap[i] = static_cast<T>(i);
  for (int64_t parent = count / 2; parent-- > 0;) sink(heap, parent, count, heap[parent], before);
  for (int64_t i = count; i < total; ++i) {
    if (before(static_cast<T>(i), heap[0])) sink(heap, 0, count, static_cast<T>(i), before);
  }
  for (int64_t last = count - 1; last > 0; --last) {
    const T value = heap[last];
    heap[last] = heap[0];
    sink(heap, 0, last, value, before);
  }
}

}  // namespace bittrue::arithmetic
