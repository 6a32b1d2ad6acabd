package emu

import (
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// numCompVectors is how many completion vectors a device has. rxe has as many
// as there are processors; they mean nothing for a device without interrupts.
const numCompVectors = 1

// getContext makes the file usable and opens its file of asynchronous events.
func getContext(c *call) error {
	f := c.file
	if f.hasContext() == nil {
		return fail(syscall.EINVAL, "the file has a context")
	}
	async, err := f.openEvents(true)
	if err != nil {
		return err
	}
	err = c.reply(&abi.GetContextResp{AsyncFD: uint32(async.fd.Load()), NumCompVectors: numCompVectors})
	if err == nil {
		err = f.setContext(async) // EINVAL if another was quicker
	}
	if err != nil {
		_ = async.Close()
	}
	return err
}

func queryDevice(c *call) error {
	attr := c.file.dev.QueryDevice()
	return c.reply(&attr)
}

// exQueryDevice answers struct ib_uverbs_ex_query_device_resp. Features that
// the device does not have (on-demand paging, clocks, RSS, tag matching) stay
// zero.
func exQueryDevice(c *call) error {
	req := decode[abi.ExQueryDevice](c)
	if req.CompMask != 0 || req.Reserved != 0 {
		return fail(syscall.EINVAL, "comp_mask is %#x, reserved %#x, not 0", req.CompMask, req.Reserved)
	}
	attr := c.file.dev.QueryDevice()
	return c.reply(&abi.ExQueryDeviceResp{
		Base:             attr,
		ResponseLength:   c.responseLength(),
		DeviceCapFlagsEx: uint64(attr.DeviceCapFlags),
	})
}

func queryPort(c *call) error {
	req := decode[abi.QueryPort](c)
	if !c.file.dev.portValid(req.PortNum) {
		return fail(syscall.EINVAL, "the device has no port %d", req.PortNum)
	}
	attr, err := c.file.dev.QueryPort(req.PortNum)
	if err != nil {
		return err
	}
	return c.reply(&attr)
}

// createCompChannel opens a file for completion events.
func createCompChannel(c *call) error {
	f := c.file
	ch, err := f.openEvents(false)
	if err != nil {
		return err
	}
	if err := c.reply(&abi.CreateCompChannelResp{FD: uint32(ch.fd.Load())}); err != nil {
		_ = ch.Close()
		return err
	}
	f.mu.Lock()
	f.channels[ch] = struct{}{}
	f.mu.Unlock()
	return nil
}
