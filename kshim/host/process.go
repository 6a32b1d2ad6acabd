//go:build linux && (amd64 || arm64 || loong64 || mips64le || ppc64le || riscv64)

package host

import "sync"

// process is the table of this process's kernel resources. Descriptor numbers,
// mappings and pinned memory belong to the process as a whole.
//
// It keeps pinned memory alive also when everything that could release it was
// dropped: the device may be writing there until the file is closed.
var process = struct {
	mu    sync.Mutex
	files map[int]struct{}  // guarded by mu: descriptors of files, by number
	maps  map[*byte]int     // guarded by mu: mappings, first byte and length
	pins  map[*pin]struct{} // guarded by mu
}{files: map[int]struct{}{}, maps: map[*byte]int{}, pins: map[*pin]struct{}{}}

// hold notes that a descriptor belongs to a file. It answers false when it does
// already.
func hold(fd int) bool {
	process.mu.Lock()
	defer process.mu.Unlock()
	if _, held := process.files[fd]; held {
		return false
	}
	process.files[fd] = struct{}{}
	return true
}

// unhold comes before the descriptor's close, after which the number may be
// another file's.
func unhold(fd int) {
	process.mu.Lock()
	defer process.mu.Unlock()
	delete(process.files, fd)
}
