//go:build linux && (amd64 || arm64 || loong64 || mips64le || ppc64le || riscv64)

package host

import (
	"runtime"
	"sync"
	"unsafe"
)

// pin is memory that the kernel may read and write.
type pin struct {
	pinner runtime.Pinner
	mem    []byte // keeps it reachable
}

// pinMemory is kshim.File's Pin. That buf is stored makes it escape: memory on
// a goroutine's stack, which moves, cannot come here.
func pinMemory(buf []byte) (addr uint64, release func()) {
	if len(buf) == 0 {
		return 0, func() {}
	}
	first := unsafe.SliceData(buf)
	p := &pin{mem: buf}
	p.pinner.Pin(first) // does nothing for memory that is not Go's
	process.mu.Lock()
	process.pins[p] = struct{}{}
	process.mu.Unlock()
	var once sync.Once
	return uint64(uintptr(unsafe.Pointer(first))), func() {
		once.Do(func() {
			process.mu.Lock()
			delete(process.pins, p)
			process.mu.Unlock()
			p.pinner.Unpin()
			p.mem = nil
		})
	}
}
