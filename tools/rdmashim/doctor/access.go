package doctor

import (
	"errors"
	"io/fs"
	"syscall"
)

// checkFiles opens the device files.
func checkFiles(e *exam) Check {
	if e.rdma == nil {
		return e.noDevice()
	}
	file, err := e.m.CharDev(e.ctx, e.device, "uverbs")
	if err != nil {
		return fail("modprobe ib_uverbs", "%s has no verbs device: %v", e.kernel, err)
	}
	if e.sys.OpenFile == nil {
		return skip("only Linux has them")
	}
	verbs := "/dev/infiniband/" + file.Name
	if c, bad := e.openFile(verbs); bad {
		return c
	}
	const cm = "/dev/infiniband/rdma_cm"
	if c, bad := e.openFile(cm); bad {
		if c.Fix == makeNodes {
			c.Fix = "modprobe rdma_ucm"
		}
		return warn(c.Fix, "%s can be opened; connections by address need %s too: %s", verbs, cm, c.Detail)
	}
	return pass("%s and %s can be opened", verbs, cm)
}

const makeNodes = "udevadm trigger --subsystem-match=infiniband_verbs --subsystem-match=misc"

// openFile tries a device file; bad has the reason of its refusal.
func (e *exam) openFile(path string) (c Check, bad bool) {
	err := e.sys.OpenFile(path)
	switch {
	case err == nil:
		return Check{}, false
	case errors.Is(err, fs.ErrNotExist):
		if e.exists("run/.containerenv") || e.exists(".dockerenv") {
			return fail("start the container with --device "+path, "%s is not there", path), true
		}
		return fail(makeNodes, "%s is not there", path), true
	case errors.Is(err, syscall.EPERM):
		return fail("start the container with --device "+path, "%s: a device control group forbids it", path), true
	case errors.Is(err, fs.ErrPermission):
		return fail("chmod a+rw "+path+"   (for good: the package rdma-core has the udev rule)", "%s may not be opened by this user", path), true
	}
	return fail("see dmesg", "%s cannot be opened: %v", path, err), true
}

// littleMemlock is a limit that is soon used up, in bytes: the defaults are
// less, 64 KiB before Linux 5.16 and 8 MiB since, which is little for a program
// that moves data.
const littleMemlock = 64 << 20

const raiseMemlock = "ulimit -l unlimited   (for good: 'memlock unlimited' in /etc/security/limits.d, LimitMEMLOCK=infinity in a systemd unit)"

// checkMemlock compares the limit with what a program needs.
func checkMemlock(e *exam) Check {
	if e.sys.Memlock == nil {
		return skip("this system tells no limit")
	}
	limit, err := e.sys.Memlock()
	switch {
	case err != nil:
		return skip("%v", err)
	case limit < 0:
		return pass("no limit on locked memory")
	case e.m.Capable(capIPCLock):
		return pass("the limit of %s does not bind this process (CAP_IPC_LOCK)", size(limit))
	case limit < 2*loopbackSize:
		return fail(raiseMemlock, "this process may lock %s: too little for any transfer", size(limit))
	case limit < littleMemlock:
		return warn(raiseMemlock, "this process may lock, and so register, %s", size(limit))
	}
	return pass("this process may lock %s", size(limit))
}

// fewDescriptors is a limit that a program is soon at: a soft device has up to
// a dozen, and each connection of the tools' control one.
const fewDescriptors = 64

// checkDescriptors looks at the limit of open files, by which a device may fail
// to open.
func checkDescriptors(e *exam) Check {
	const fix = "ulimit -n 1024"
	if e.sys.Descriptors == nil {
		return skip("this system tells no limit")
	}
	limit, err := e.sys.Descriptors()
	switch {
	case err != nil:
		return skip("%v", err)
	case noDescriptor(e.openErr):
		return fail(fix, "no file could be opened for the device: this process may have %d open (EMFILE), the machine those of fs.file-max (ENFILE)", limit)
	case limit >= 0 && limit < fewDescriptors:
		return warn(fix, "this process may have %d files open; a soft device has up to 12", limit)
	case limit < 0:
		return pass("no limit on open files")
	}
	return pass("this process may have %d files open", limit)
}

// noDescriptor tells that an error is of a limit of open files.
func noDescriptor(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
