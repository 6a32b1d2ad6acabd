package verbs

import (
	"cmp"
	"errors"
	"fmt"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
)

// Asking for the driver: an ioctl that names a wrong driver is EINVAL, and an
// ioctl with the right driver and a method that does not exist EPROTONOSUPPORT
// (uverbs_ioctl.c:ib_uverbs_cmd_verbs). Neither does anything.
const noMethod abi.MethodID = 0xfff

// maxDrivers is far more than enum rdma_driver_id has.
const maxDrivers = 64

// askDriver asks a device file which driver is behind it; DriverUnknown if the
// kernel does not say.
func askDriver(file kshim.File) abi.DriverID {
	arg := make([]byte, abi.IoctlHdrSize)
	_, release := file.Pin(arg)
	defer release()
	for id := abi.DriverUnknown; id < maxDrivers; id++ {
		hdr := abi.IoctlHdr{Length: abi.IoctlHdrSize, ObjectID: abi.ObjectDevice, MethodID: noMethod, DriverID: id}
		hdr.Put(arg)
		if errors.Is(file.Ioctl(arg), syscall.EPROTONOSUPPORT) {
			return id
		}
	}
	return abi.DriverUnknown
}

// missing lists what a driver would need here.
var missing = map[abi.DriverID]string{
	abi.DriverSIW:  "its queues, whose elements carry a valid bit in place of indices, and connecting by rdma_cm",
	abi.DriverMLX5: "queues and doorbell records in the program's memory, and doorbell registers that are mapped",
	abi.DriverMLX4: "queues and doorbell records in the program's memory, and doorbell registers that are mapped",
}

// spoken returns why the device's driver is not spoken here, nil if it is.
// GET_CONTEXT then names the driver to the kernel, which refuses a wrong one.
func (info DeviceInfo) spoken() error {
	switch {
	case info.Driver == abi.DriverUnknown:
		return fmt.Errorf("%w: the kernel does not say which it is", errDriver)
	case info.Driver != abi.DriverRXE:
		return fmt.Errorf("%w: it is driven by %v; what is missing: %s",
			errDriver, info.Driver, cmp.Or(missing[info.Driver], "its queues and its doorbell"))
	case info.ABIVersion < abi.RXEABIVersionMin || info.ABIVersion > abi.RXEABIVersionMax:
		return fmt.Errorf("%w: %v has version %d of its interface, known are %d to %d",
			errDriver, info.Driver, info.ABIVersion, abi.RXEABIVersionMin, abi.RXEABIVersionMax)
	}
	return nil
}
