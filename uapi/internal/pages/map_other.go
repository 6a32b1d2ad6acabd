//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package pages

import "os"

// mapMemory has no anonymous mappings to offer here: it cuts an aligned piece
// out of the Go heap.
func mapMemory(size int) ([]byte, error) {
	page := os.Getpagesize()
	mem := make([]byte, size+page)
	skip := (page - int(address(mem)%uintptr(page))) % page
	return mem[skip : skip+size : skip+size], nil
}

func unmapMemory([]byte) error { return nil }
