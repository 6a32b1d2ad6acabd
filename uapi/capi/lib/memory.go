//go:build linux && cgo

package main

// #include "rdma.h"
import "C"

import (
	"fmt"
	"slices"
	"syscall"
	"unsafe"

	"github.com/rdmashim/rdmashim/kshim/cmemory"
	"github.com/rdmashim/rdmashim/uapi"
)

// lent is the memory that a program registers, where it lies. Empty memory is
// left for uapi to refuse.
func lent(addr unsafe.Pointer, n C.uint64_t, flags uapi.Access) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	mem := cmemory.Slice(uint64(uintptr(addr)), uint64(n))
	if mem == nil || cmemory.Probe(mem, flags&uapi.AccessLocalWrite != 0) != nil {
		return nil, fmt.Errorf("rdma RegMR: %d bytes at %p are not there, or cannot be written as their access asks: %w", n, addr, syscall.EFAULT)
	}
	return mem, nil
}

// longestName bounds the text that loadText reads, in bytes.
const longestName = 4096

// loadText reads a text of the program, which ends with a zero. None is "".
func loadText(from *C.char) (string, error) {
	if from == nil {
		return "", nil
	}
	n := -1
	var text []byte
	err := access(from, 0, longestName, func(room []C.char) {
		if n = slices.Index(room, 0); n >= 0 {
			text = slices.Clone(unsafe.Slice((*byte)(unsafe.Pointer(from)), n))
		}
	})
	if err == nil && n < 0 {
		err = fmt.Errorf("rdma: a name has at most %d bytes: %w", longestName-1, syscall.EINVAL)
	}
	return string(text), err
}

// load reads a structure of the program.
func load[T any](from *T) (v T, err error) {
	err = access(from, 0, 1, func(list []T) { v = list[0] })
	return v, err
}

// store writes structures to an array of the program, from an index on.
func store[T any](to *T, index int, list ...T) error {
	return access(to, index, len(list), func(room []T) { copy(room, list) })
}

// access calls f with n structures of an array of the program, at an index.
func access[T any](array *T, index, n int, f func([]T)) error {
	if n == 0 {
		return nil
	}
	first, size := uint64(uintptr(unsafe.Pointer(array))), uint64(unsafe.Sizeof(*array))
	mem := cmemory.Slice(first+uint64(index)*size, uint64(n)*size)
	if first == 0 || mem == nil || cmemory.Guard(func() { f(unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(mem))), n)) }) != nil {
		return fmt.Errorf("rdma: what a pointer, %p, leads to is not there, or cannot be written: %w", array, syscall.EFAULT)
	}
	return nil
}
