package uapi

import (
	"errors"
	"log/slog"
	"sync"

	"github.com/rdmashim/rdmashim/kshim/emu"
)

// MiniKernel is the emulated kernel that this process's soft and sim devices
// are devices of. Open loads its modules soft and sim and adds a device to one
// of them, "soft0", and the last Close of the device takes it away again. Each
// context sees its own device and no other, as if it were in a network
// namespace of its own; a Process of the Machine sees them all.
//
// Insmod of soft or sim adds a device for each parameter, which is the text
// after the colon in a device's name ("127.0.0.5?mtu=1024", and "" for none),
// and keeps them until Rmmod; they log to slog.Default, too. Open takes the
// names of devices that are there, "soft0", also of those that a module of the
// program's own registered.
func MiniKernel() *emu.Machine { return mini().Machine }

func mini() *miniKernel {
	booted.Do(func() { booted.kernel = boot() })
	return booted.kernel
}

var booted struct {
	sync.Once
	kernel *miniKernel
}

// miniKernel is the process's emulated kernel with its two drivers.
type miniKernel struct {
	*emu.Machine

	mu     sync.Mutex
	loaded map[deviceKind]*emu.Driver // guarded by mu
}

func boot() *miniKernel {
	k := &miniKernel{Machine: emu.New(emu.Options{}), loaded: map[deviceKind]*emu.Driver{}}
	for _, kind := range []deviceKind{kindSoft, kindSim} {
		if err := k.Install(k.module(kind)); err != nil {
			panic(err) // the names are good, and the machine is new
		}
	}
	return k
}

// module is the soft RNIC's driver for one kind of link.
func (k *miniKernel) module(kind deviceKind) emu.Module {
	var held []*backend // for Insmod's parameters
	release := func() (err error) {
		k.set(kind, nil)
		for _, s := range held {
			err = errors.Join(err, devices.release(s))
		}
		held = nil
		return err
	}
	return emu.Module{
		Name:  string(kind),
		Needs: []string{"ib_uverbs"},
		Init: func(this *emu.Driver) error {
			k.set(kind, this)
			for _, param := range this.Params {
				spec, err := parseDevice(moduleDevice(kind, param))
				if err == nil {
					var s *backend
					if s, err = devices.acquire(spec, slog.Default()); err == nil {
						held = append(held, s)
						continue
					}
				}
				return errors.Join(err, release())
			}
			return nil
		},
		Exit: func(*emu.Driver) error { return release() },
	}
}

// moduleDevice is the device name of a module's parameter.
func moduleDevice(kind deviceKind, param string) string {
	if param == "" || param[0] == '?' {
		return string(kind) + param
	}
	return string(kind) + ":" + param
}

func (k *miniKernel) set(kind deviceKind, d *emu.Driver) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.loaded[kind] = d
}

// driver is the loaded module of a kind, loading it first if needed.
func (k *miniKernel) driver(kind deviceKind) (*emu.Driver, error) {
	for {
		k.mu.Lock()
		d := k.loaded[kind]
		k.mu.Unlock()
		if d != nil {
			return d, nil
		}
		if err := k.Modprobe(string(kind)); err != nil {
			return nil, err
		}
	}
}
