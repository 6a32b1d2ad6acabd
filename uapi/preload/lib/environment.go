//go:build linux && cgo

package main

// extern char **environ;
import "C"

import (
	"os"
	"strings"
	"unsafe"
)

// readEnvironment gives Go the variables of this project as the program has
// them now. Go took its own from where the kernel had put them: a program that
// sets its title writes over those (setproctitle), and one that sets a variable
// before it uses RDMA means that one.
func readEnvironment() {
	for at := C.environ; at != nil && *at != nil; at = (**C.char)(unsafe.Add(unsafe.Pointer(at), unsafe.Sizeof(*at))) {
		name, value, _ := strings.Cut(C.GoString(*at), "=")
		ours := strings.HasPrefix(name, "RDMASHIM_") || name == "XDG_RUNTIME_DIR" || name == "TMPDIR"
		if ours && os.Getenv(name) != value {
			os.Setenv(name, value)
		}
	}
}

// programName is what Linux calls the program, in 15 bytes.
func programName() string {
	comm, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		return "program"
	}
	return strings.TrimSpace(string(comm))
}
