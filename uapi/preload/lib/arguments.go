//go:build linux && cgo

package main

// extern char **environ;
import "C"

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"unsafe"
)

// readProgram gives Go the program's name and the variables of this project as
// the program has them now. Go took them from where the kernel had put them:
// a program that sets its title writes over that (setproctitle).
func readProgram() {
	name := filepath.Base(strings.Clone(os.Args[0]))
	comm, err := os.ReadFile("/proc/self/comm")
	if comm = bytes.TrimSpace(comm); err == nil && !strings.HasPrefix(name, string(comm)) {
		name = string(comm)
	}
	os.Args[0] = name
	for at := C.environ; at != nil && *at != nil; at = (**C.char)(unsafe.Add(unsafe.Pointer(at), unsafe.Sizeof(*at))) {
		name, value, _ := strings.Cut(C.GoString(*at), "=")
		ours := strings.HasPrefix(name, "RDMASHIM_") || name == "XDG_RUNTIME_DIR" || name == "TMPDIR"
		if ours && os.Getenv(name) != value {
			os.Setenv(name, value)
		}
	}
}
