package minikernel

import (
	"github.com/rdmashim/rdmashim/kshim/emu"
	"github.com/rdmashim/rdmashim/uapi/internal/device"
)

// Machine is the emulated kernel that this process's soft and sim devices are
// devices of. Each program sees its own device and no other, as if it were in a
// network namespace of its own; a Process of the Machine sees them all.
//
// Insmod of soft or sim adds a device for each parameter, which is the text
// after the colon in a device's name ("127.0.0.5?mtu=1024", and "" for none),
// and keeps them until Rmmod; they log to slog.Default, too. uapi.Open takes
// the names of devices that are there, "soft0", also of those that a module of
// the program's own registered.
func Machine() *emu.Machine { return device.Machine() }
