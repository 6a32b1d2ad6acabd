package uapi

import (
	"context"
	"net"
	"os"
	"sync"
)

// The package functions work on the default device.
var defaults struct {
	mu     sync.Mutex
	device *Device   // guarded by mu; nil until first used
	more   []*Device // guarded by mu: opened by Listen, whose addresses device lacks
}

// Default is the device behind the package functions. The first use opens it
// with the device that RDMASHIM_DEVICE names, else "soft"; an error is
// returned by every function until opening succeeds.
func Default() (*Device, error) {
	return defaultDevice(func() (*Device, error) { return Open("", OpenConfig{}) })
}

// defaultDevice returns the default device. It opens it first where that is
// needed.
func defaultDevice(open func() (*Device, error)) (d *Device, err error) {
	defaults.mu.Lock()
	defer defaults.mu.Unlock()
	if defaults.device == nil {
		if d, err = open(); err != nil {
			return nil, err
		}
		defaults.device = d
	}
	return defaults.device, nil
}

// Close closes the default device, if it is open, and the devices that Listen
// opened. The next package function opens a new one; handles of the old one
// answer EBADF there.
func Close() error {
	defaults.mu.Lock()
	list := defaults.more
	if defaults.device != nil {
		list = append(list, defaults.device)
	}
	defaults.device, defaults.more = nil, nil
	defaults.mu.Unlock()
	var err error
	for _, d := range list {
		if e := d.Close(); err == nil {
			err = e
		}
	}
	return err
}

// orVariable returns the name of a device that was asked for, else what
// RDMASHIM_DEVICE names; "" for neither. label is what errors call it.
func orVariable(device string) (name, label string) {
	if device == "" {
		if device = os.Getenv("RDMASHIM_DEVICE"); device != "" {
			return device, "RDMASHIM_DEVICE=" + device
		}
	}
	return device, device
}

// orDefault is orVariable for Open, which an empty name gives DefaultDevice.
func orDefault(device string) (name, label string) {
	if name, label = orVariable(device); name == "" {
		return DefaultDevice, DefaultDevice
	}
	return name, label
}

// onDefault makes a call on the default device. It returns failed if that does
// not open.
func onDefault[T any](failed T, call func(d *Device) (T, error)) (T, error) {
	d, err := Default()
	if err != nil {
		return failed, err
	}
	return call(d)
}

// RegMR is Device.RegMR on the default device.
func RegMR(buf []byte, access Access) (MR, error) {
	return onDefault(-1, func(d *Device) (MR, error) { return d.RegMR(buf, access) })
}

// DeregMR is Device.DeregMR on the default device.
func DeregMR(mr MR) error {
	_, err := onDefault(0, func(d *Device) (int, error) { return 0, d.DeregMR(mr) })
	return err
}

// CreateQP is Device.CreateQP on the default device.
func CreateQP(sendDepth, recvDepth int) (QP, error) {
	return onDefault(-1, func(d *Device) (QP, error) { return d.CreateQP(sendDepth, recvDepth) })
}

// DestroyQP is Device.DestroyQP on the default device.
func DestroyQP(qp QP) error {
	_, err := onDefault(0, func(d *Device) (int, error) { return 0, d.DestroyQP(qp) })
	return err
}

// PostWrite is Device.PostWrite on the default device.
func PostWrite(qp QP, mr MR, localOffset, remoteAddr uint64, rkey uint32, length uint64) (WRID, error) {
	return onDefault(-1, func(d *Device) (WRID, error) { return d.PostWrite(qp, mr, localOffset, remoteAddr, rkey, length) })
}

// PostRead is Device.PostRead on the default device.
func PostRead(qp QP, mr MR, localOffset, remoteAddr uint64, rkey uint32, length uint64) (WRID, error) {
	return onDefault(-1, func(d *Device) (WRID, error) { return d.PostRead(qp, mr, localOffset, remoteAddr, rkey, length) })
}

// PostSend is Device.PostSend on the default device.
func PostSend(qp QP, mr MR, length uint64) (WRID, error) {
	return onDefault(-1, func(d *Device) (WRID, error) { return d.PostSend(qp, mr, length) })
}

// PostRecv is Device.PostRecv on the default device.
func PostRecv(qp QP, mr MR, localOffset, length uint64) (WRID, error) {
	return onDefault(-1, func(d *Device) (WRID, error) { return d.PostRecv(qp, mr, localOffset, length) })
}

// PollCQ is Device.PollCQ on the default device.
func PollCQ(qp QP, wc []WC) (int, error) {
	d, err := Default()
	if err != nil {
		return noCompletion(wc, err)
	}
	return d.PollCQ(qp, wc)
}

// WaitCQ is Device.WaitCQ on the default device.
func WaitCQ(ctx context.Context, qp QP, wc []WC) (int, error) {
	d, err := Default()
	if err != nil {
		return noCompletion(wc, err)
	}
	return d.WaitCQ(ctx, qp, wc)
}

// LocalEndpoint is Device.LocalEndpoint on the default device.
func LocalEndpoint(qp QP) (Endpoint, error) {
	return onDefault(Endpoint{}, func(d *Device) (Endpoint, error) { return d.LocalEndpoint(qp) })
}

// ConnectQP is Device.ConnectQP on the default device.
func ConnectQP(qp QP, remote Endpoint) error {
	_, err := onDefault(0, func(d *Device) (int, error) { return 0, d.ConnectQP(qp, remote) })
	return err
}

// ConnectOver is Device.ConnectOver on the default device.
func ConnectOver(ctx context.Context, conn net.Conn, qp QP, mrs []MR, data []byte) (Introduction, error) {
	return onDefault(Introduction{}, func(d *Device) (Introduction, error) { return d.ConnectOver(ctx, conn, qp, mrs, data) })
}

// QueryMR is Device.QueryMR on the default device.
func QueryMR(mr MR) (MRInfo, error) {
	return onDefault(MRInfo{}, func(d *Device) (MRInfo, error) { return d.QueryMR(mr) })
}
