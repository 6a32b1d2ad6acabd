package conform

import (
	"os"
	"path/filepath"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/host"
)

// rxeName is the kernel's device under test.
func rxeName() string {
	if name := os.Getenv("CONFORM_DEVICE"); name != "" {
		return name
	}
	return "rxe0"
}

// haveRXE says whether this machine's kernel has the device.
func haveRXE() bool {
	_, err := os.Stat(filepath.Join("/sys/class/infiniband", rxeName(), "parent"))
	return err == nil
}

// kernelRXE is the real kernel's device, opened for both sides.
func kernelRXE() (*system, error) {
	kernel, err := host.New(host.Options{})
	if err != nil {
		return nil, err
	}
	name := rxeName()
	return &system{
		name:    "rxe",
		process: func(int) (kshim.Kernel, func()) { return kernel, func() {} },
		device:  [2]string{name, name},
		uapi:    [2]string{name, name},
	}, nil
}
