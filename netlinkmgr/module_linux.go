package netlinkmgr

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// insertModule loads a module file: by finit_module, so that the kernel sees
// the file that a security policy may ask about; a compressed one is unpacked
// and given as memory.
func insertModule(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	image, compressed, err := unpackModule(path, f)
	if err != nil {
		return &fs.PathError{Op: "unpack", Path: path, Err: err}
	}
	if compressed {
		return unix.InitModule(image, "")
	}
	return unix.FinitModule(int(f.Fd()), "", 0)
}

// removeModule unloads a module without waiting for its users.
func removeModule(name string) error {
	err := unix.DeleteModule(name, unix.O_NONBLOCK)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return unix.EBUSY
	}
	return err
}
