package device

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/emu"
	"github.com/rdmashim/rdmashim/uapi/stats"
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

// read reads devices that the kernel has. Queue pairs of other processes, whose
// kernel this is, name them.
func (k *miniKernel) read(devices []*Device) []stats.Device {
	list := []stats.Device{}
	viewer := k.Process("stats")
	defer viewer.Exit()
	for _, e := range viewer.Devices() {
		i := slices.IndexFunc(devices, func(d *Device) bool { return d.Name == e.Name() })
		if i < 0 {
			continue
		}
		d := devices[i]
		r := stats.Device{
			Name: d.Name, Device: d.OpenName(), Kind: string(d.Spec.Kind), NetDev: d.NetDev, Address: d.Addr,
			PID: os.Getpid(), Process: processName(), Time: time.Now(), Ports: []stats.Port{}, QueuePairs: []stats.QueuePair{},
		}
		if port, err := e.QueryPort(1); err == nil {
			r.Ports = append(r.Ports, stats.Port{Port: 1, State: port.State.String(), MTU: port.ActiveMTU.Bytes(), Counters: e.Counters()})
		}
		for _, o := range viewer.Objects(e, "qp") {
			var q stats.QueuePair
			if text, err := json.Marshal(o.Stat); err == nil && json.Unmarshal(text, &q) == nil {
				q.PID, q.Process = o.Owner.Owner()
				r.QueuePairs = append(r.QueuePairs, q)
			}
		}
		list = append(list, r)
	}
	return list
}
