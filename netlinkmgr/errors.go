package netlinkmgr

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"
)

// Every error here says what to do, and errors.Is finds the errno it stands
// for.

// OpError is the kernel's refusal of an operation without a better name.
type OpError struct {
	Op  string // "query port rxe0/1"
	Err error
}

func (e *OpError) Error() string { return e.Op + ": " + e.Err.Error() }
func (e *OpError) Unwrap() error { return e.Err }

func opError(op string, err error) error {
	var perm *PermissionError
	if err == nil || errors.As(err, &perm) || isNoRDMA(err) {
		return err
	}
	return &OpError{op, err}
}

// NoRDMAError: the kernel has no RDMA subsystem, or it is not loaded.
type NoRDMAError struct{ Err error }

func (e *NoRDMAError) Error() string {
	return "the kernel's RDMA core is not loaded: 'rdmashim link up' (as root) loads it with rdma_rxe"
}
func (e *NoRDMAError) Unwrap() error { return e.Err }

func isNoRDMA(err error) bool {
	var none *NoRDMAError
	return errors.As(err, &none)
}

// PermissionError: a privilege is missing.
type PermissionError struct {
	Op         string // "create link rxe0"
	Capability string // "CAP_NET_ADMIN"
	Err        error
}

func (e *PermissionError) Error() string {
	return fmt.Sprintf("%s: no permission: run it as root (sudo) or with %s in the initial user namespace", e.Op, e.Capability)
}
func (e *PermissionError) Unwrap() error { return e.Err }

// refused names the kernel's refusal of an operation that takes CAP_NET_ADMIN.
func refused(op string, err error) error {
	return opError(op, permission(op, "CAP_NET_ADMIN", err))
}

// permission names a refusal for lack of privilege; other errors pass.
func permission(op, capability string, err error) error {
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
		return &PermissionError{op, capability, err}
	}
	return err
}

// NoDeviceError: no RDMA device has this name.
type NoDeviceError struct {
	Device string
	Known  []string
}

func (e *NoDeviceError) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("no RDMA device %q, nor any other: 'rdmashim link up' makes one", e.Device)
	}
	return fmt.Sprintf("no RDMA device %q; there are: %s", e.Device, strings.Join(e.Known, ", "))
}
func (e *NoDeviceError) Unwrap() error { return syscall.ENODEV }

// NoModuleError: the running kernel's modules lack one that is needed.
type NoModuleError struct {
	Module  string
	Release string
	Dir     string // where it was looked for
	Install string // command that installs the package which has it; may be empty
}

func (e *NoModuleError) Error() string {
	s := fmt.Sprintf("kernel %s has no module %s in %s", e.Release, e.Module, e.Dir)
	if e.Install != "" {
		return s + ": install the package that has it: " + e.Install
	}
	return s + ": install your distribution's package of extra kernel modules, or boot a kernel that has it ('rdmashim vm run' does)"
}
func (e *NoModuleError) Unwrap() error { return syscall.ENOENT }

// ModuleError: a module is there, but the kernel does not take it.
type ModuleError struct {
	Module string
	Path   string
	Err    error
}

func (e *ModuleError) Error() string {
	return fmt.Sprintf("load module %s (%s): %v: %s", e.Module, e.Path, e.Err, moduleAdvice(e.Err))
}
func (e *ModuleError) Unwrap() error { return e.Err }

func moduleAdvice(err error) string {
	switch {
	case errors.Is(err, syscall.ENOEXEC), errors.Is(err, syscall.EINVAL):
		return "the file was not built for the running kernel: reboot into the kernel whose modules are installed"
	case errors.Is(err, syscall.ENOENT):
		return "it needs symbols that the running kernel has not: reboot into the kernel whose modules are installed"
	case errors.Is(err, syscall.EPERM):
		return "the kernel is locked down or kernel.modules_disabled is 1: modules can be loaded only after a reboot without that"
	case errors.Is(err, ekeyrejected), errors.Is(err, enokey):
		return "the kernel takes only modules signed with a key it knows: use the distribution's package"
	}
	return "the kernel log (dmesg) says why"
}

// errno values of Linux that package syscall does not name everywhere.
const (
	enokey       = syscall.Errno(126)
	ekeyrejected = syscall.Errno(129)
)

// NameTakenError: the link's name belongs to another device.
type NameTakenError struct {
	Device string
	NetDev string // the one it is on; empty when it has none
	Want   string
	RXE    bool
}

func (e *NameTakenError) Error() string {
	s := fmt.Sprintf("the name %s is taken by the RDMA device on %s", e.Device, orNone(e.NetDev))
	if !e.RXE {
		return s + fmt.Sprintf(", which is no rxe link: choose another name for the link on %s", e.Want)
	}
	return s + fmt.Sprintf(": choose another name for the link on %s, or remove it with 'rdmashim link delete %s'", e.Want, e.Device)
}
func (e *NameTakenError) Unwrap() error { return syscall.EEXIST }

// NetDevHasLinkError: the network device has an rxe link, and can carry one.
type NetDevHasLinkError struct {
	NetDev string
	Device string // the link it has; empty when the kernel only said so
	Want   string
}

func (e *NetDevHasLinkError) Error() string {
	switch e.Device {
	case e.Want:
		return fmt.Sprintf("%s has the rxe link %s already: use it, or remove it with 'rdmashim link delete %s'", e.NetDev, e.Device, e.Device)
	case "":
		return fmt.Sprintf("%s has an rxe link already, so %s cannot be made: see 'rdmashim link show', in all network namespaces", e.NetDev, e.Want)
	}
	return fmt.Sprintf("%s has the rxe link %s already, so %s cannot be made: use %s, or remove it with 'rdmashim link delete %s'", e.NetDev, e.Device, e.Want, e.Device, e.Device)
}
func (e *NetDevHasLinkError) Unwrap() error { return syscall.EEXIST }

// NetDevGoneError: there is no such network device, or it went away meanwhile.
type NetDevGoneError struct {
	NetDev string
	Known  []string
}

func (e *NetDevGoneError) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("network device %s is not there, or went away: see 'ip link'", e.NetDev)
	}
	return fmt.Sprintf("network device %s is not there, or went away; there are: %s", e.NetDev, strings.Join(e.Known, ", "))
}
func (e *NetDevGoneError) Unwrap() error { return syscall.ENODEV }

// NetDevUnsuitableError: rxe cannot work on this network device.
type NetDevUnsuitableError struct {
	NetDev string
	Why    string
}

func (e *NetDevUnsuitableError) Error() string {
	return fmt.Sprintf("rxe cannot use %s: %s: name another network device", e.NetDev, e.Why)
}
func (e *NetDevUnsuitableError) Unwrap() error { return syscall.EINVAL }

// NoNetDevError: none was named, and none serves.
type NoNetDevError struct{ Passed []string } // "lo: loopback"

func (e *NoNetDevError) Error() string {
	return fmt.Sprintf("no network device serves an rxe link (%s): name one, or make one: ip link add veth0 type veth peer name veth1; ip addr add 10.0.0.1/24 dev veth0; ip link set veth1 up", orNone(strings.Join(e.Passed, "; ")))
}
func (e *NoNetDevError) Unwrap() error { return syscall.ENODEV }

// NotReadyError: the link is made, but its port or GID was not usable in time.
type NotReadyError struct {
	Device, NetDev string
	Port           string // the port's last state
	Why            string // the missing part and the remedy
	Waited         time.Duration
	Err            error // the end of the context, or ETIMEDOUT
}

func (e *NotReadyError) Error() string {
	return fmt.Sprintf("%s on %s was not usable within %v (port %s): %s", e.Device, e.NetDev, e.Waited, e.Port, e.Why)
}
func (e *NotReadyError) Unwrap() error { return e.Err }

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
