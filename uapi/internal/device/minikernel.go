package device

import (
	"errors"
	"log/slog"
	"sync"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/emu"
)

// Machine is the emulated kernel that this process's soft and sim devices are
// devices of (uapi/minikernel).
func Machine() *emu.Machine { return mini().Machine }

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
	loaded map[Kind]*emu.Driver // guarded by mu
}

func boot() *miniKernel {
	k := &miniKernel{Machine: emu.New(), loaded: map[Kind]*emu.Driver{}}
	for _, kind := range []Kind{Soft, Sim} {
		if err := k.Install(k.module(kind)); err != nil {
			panic(err) // the names are good, and the machine is new
		}
	}
	return k
}

// module is the soft RNIC's driver for one kind of link.
func (k *miniKernel) module(kind Kind) emu.Module {
	var acquired []*Device // for Insmod's parameters
	release := func() (err error) {
		k.set(kind, nil)
		for _, s := range acquired {
			err = errors.Join(err, devices.release(s))
		}
		acquired = nil
		return err
	}
	return emu.Module{
		Name:  string(kind),
		Needs: []string{"ib_uverbs"},
		Init: func(this *emu.Driver) error {
			k.set(kind, this)
			for _, param := range this.Params {
				spec, err := Parse(moduleDevice(kind, param))
				if err == nil {
					var s *Device
					if s, err = devices.acquire(spec, slog.Default()); err == nil {
						acquired = append(acquired, s)
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
func moduleDevice(kind Kind, param string) string {
	if param == "" || param[0] == '?' {
		return string(kind) + param
	}
	return string(kind) + ":" + param
}

func (k *miniKernel) set(kind Kind, d *emu.Driver) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.loaded[kind] = d
}

// driver is the loaded module of a kind, loading it first if needed.
func (k *miniKernel) driver(kind Kind) (*emu.Driver, error) {
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

// processesOn starts processes that have one device of the mini kernel.
func processesOn(device string) func(client string) (kshim.Kernel, func(), error) {
	return func(client string) (kshim.Kernel, func(), error) {
		p, err := mini().ProcessOn(device, client)
		if err != nil {
			return nil, nil, err
		}
		return p, p.Exit, nil
	}
}
