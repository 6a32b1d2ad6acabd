package netlinkmgr

import (
	"errors"
	"os"
	"sync"

	"github.com/u-root/u-root/pkg/kmodule"
	"golang.org/x/sys/unix"
)

// moduleFiles lists the files that modprobe would load for a module, in order.
func moduleFiles(name string) (list []string, err error) {
	var mu sync.Mutex // kmodule visits the modules that one needs all at once
	err = kmodule.ProbeOptions(name, "", kmodule.ProbeOpts{DryRunCB: func(path string) {
		mu.Lock()
		defer mu.Unlock()
		list = append(list, path)
	}})
	return list, err
}

// insertModule loads a module file, which may be compressed.
func insertModule(path string) error {
	f, err := os.Open("/" + path)
	if err != nil {
		return err
	}
	defer f.Close()
	return kmodule.FileInit(f, "", 0)
}

// removeModule unloads a module without waiting for its users.
func removeModule(name string) error {
	err := kmodule.Delete(name, unix.O_NONBLOCK)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return unix.EBUSY
	}
	return err
}
