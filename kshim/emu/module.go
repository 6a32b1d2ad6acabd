package emu

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/driver"
)

// Module is a loadable part of the kernel, as it lies on disk for Insmod. Its
// functions are called once per load, without the machine's locks.
type Module struct {
	// Name is 1 to 55 letters, digits, '_' and '-': "soft".
	Name string
	// Size is the size that Lsmod shows, in bytes; 0 is unknown.
	Size int
	// Needs are the modules that must be loaded before this one, and cannot be
	// unloaded while it is.
	Needs []string
	// Init starts the module, as by registering devices. When it fails, the
	// module is not loaded, and devices it has registered are gone again. May
	// be nil.
	Init func(this *Driver) error
	// Exit undoes Init. It cannot refuse: when it fails, Rmmod answers its
	// error, and the module is unloaded all the same, as are devices that it
	// has left. May be nil.
	Exit func(this *Driver) error
}

// ModuleState is where in its life a loaded module is (enum module_state).
type ModuleState uint8

const (
	ModuleLoading   ModuleState = iota // Init is at work
	ModuleLive                         // in use, or may be
	ModuleUnloading                    // Exit is at work
)

// String is the word that /proc/modules has.
func (s ModuleState) String() string {
	return [...]string{"Loading", "Live", "Unloading"}[s]
}

// ModuleInfo is a line of Lsmod.
type ModuleInfo struct {
	Name   string
	Size   int      // bytes; 0 is unknown
	Refs   int      // modules and open files that need it; it goes only at 0
	UsedBy []string // the modules among them, the latest loaded first
	State  ModuleState
}

// Driver is a loaded module's hand on its machine, as THIS_MODULE is: devices
// registered through it are the module's. It is of no use once the module has
// been unloaded.
type Driver struct {
	// Params are Insmod's parameters, as in "insmod soft 127.0.0.5".
	Params []string

	machine *Machine
	module  *module
}

// Logger writes to the kernel log, pr_info's, which /dev/kmsg shows.
func (d *Driver) Logger() *slog.Logger { return d.machine.log }

// Register adds a device that belongs to the module: while one of its files is
// open, the module stays. See Machine.Register. ENODEV when the module is being
// unloaded.
func (d *Driver) Register(dev driver.Device) error { return d.machine.register(dev, d.module) }

// Unregister takes a device away, also while it is open. See
// Machine.Unregister.
func (d *Driver) Unregister(name string) error { return d.machine.Unregister(name) }

// module is a loaded Module, struct module.
type module struct {
	Module
	state  ModuleState // guarded by Machine.mu, as are all
	needs  []*module
	usedBy []*module
	files  int // open ones that hold it
	gone   bool
}

// moduleUverbs is the name of the module that brings device files. It comes
// with every machine.
const moduleUverbs = "ib_uverbs"

// maxModuleName is MODULE_NAME_LEN without its closing zero.
const maxModuleName = 55

// Install puts a module where Insmod finds it, as depmod does. EINVAL when the
// name is none, EEXIST when there is one of that name.
func (m *Machine) Install(mod Module) error {
	bad := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	}
	if mod.Name == "" || len(mod.Name) > maxModuleName || strings.ContainsFunc(mod.Name, bad) {
		return &Error{Op: "install", Path: mod.Name, Msg: "not a module's name: 1 to 55 letters, digits, '_' and '-'", Errno: syscall.EINVAL}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.installed[mod.Name]; ok {
		return &Error{Op: "install", Path: mod.Name, Msg: "a module of that name is installed", Errno: syscall.EEXIST}
	}
	mod.Needs = slices.Clone(mod.Needs)
	m.installed[mod.Name] = mod
	return nil
}

// Insmod loads an installed module: ENOENT when there is none of that name or
// one that it needs is not loaded (the kernel's "unknown symbol"), EEXIST when
// it is loaded, EBUSY while it, or one that it needs, is being loaded or
// unloaded, and the error of its Init, which gets the parameters.
func (m *Machine) Insmod(name string, params ...string) error {
	mod, err := m.beginInsmod(name)
	if err != nil {
		return explain(err, "insmod", name)
	}
	if mod.Init != nil {
		err = mod.Init(&Driver{params, m, mod})
	}
	m.mu.Lock()
	if err == nil {
		mod.state = ModuleLive
		m.mu.Unlock()
		m.log.Info(name + ": module loaded")
		return nil
	}
	mod.state = ModuleUnloading
	m.mu.Unlock()
	return explain(errors.Join(err, m.endRmmod(mod)), "insmod", name)
}

// beginInsmod makes the module known, so that none of its name is loaded beside
// it, and holds the modules that it needs.
func (m *Machine) beginInsmod(name string) (*module, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	on, ok := m.installed[name]
	if !ok {
		return nil, fail(syscall.ENOENT, "there is no such module")
	}
	if old := m.module(name); old != nil {
		if old.state != ModuleLive {
			return nil, fail(syscall.EBUSY, "the module is being loaded or unloaded")
		}
		return nil, fail(syscall.EEXIST, "the module is loaded")
	}
	mod := &module{Module: on}
	for _, n := range on.Needs {
		need := m.module(n)
		switch {
		case need == nil:
			return nil, fail(syscall.ENOENT, "it needs module %s, which is not loaded; load that first", n)
		case need.state != ModuleLive:
			return nil, fail(syscall.EBUSY, "it needs module %s, which is being loaded or unloaded", n)
		case !slices.Contains(mod.needs, need):
			mod.needs = append(mod.needs, need)
		}
	}
	for _, need := range mod.needs {
		need.usedBy = append(need.usedBy, mod)
	}
	m.modules = append(m.modules, mod)
	return mod, nil
}

// Modprobe loads a module and before it those that it needs, as far as they are
// not loaded. It is no error when the module itself is. ELOOP when modules need
// one another in a circle; for others see Insmod.
func (m *Machine) Modprobe(name string) error { return m.modprobe(name, nil) }

func (m *Machine) modprobe(name string, path []string) error {
	if slices.Contains(path, name) {
		return explain(fail(syscall.ELOOP, "modules need one another: %s", strings.Join(append(path, name), ", ")), "modprobe", name)
	}
	m.mu.Lock()
	on, loaded := m.installed[name], m.module(name) != nil
	m.mu.Unlock()
	if !loaded {
		for _, n := range on.Needs {
			if err := m.modprobe(n, append(path, name)); err != nil {
				return err
			}
		}
	}
	if err := m.Insmod(name); err != nil && !errors.Is(err, syscall.EEXIST) {
		return err
	}
	return nil
}

// Rmmod unloads a module: ENOENT when it is not loaded, EBUSY while it is being
// loaded or unloaded, while other modules need it and while files that need it
// are open (of these two Linux says EAGAIN, meant for a caller that would
// wait). Then nothing has happened. Any other error is one of its Exit or of
// its devices, and the module is gone.
func (m *Machine) Rmmod(name string) error {
	mod, err := m.beginRmmod(name)
	if err != nil {
		return explain(err, "rmmod", name)
	}
	if mod.Exit != nil {
		err = mod.Exit(&Driver{nil, m, mod})
	}
	m.log.Info(name + ": module unloaded")
	if err = errors.Join(err, m.endRmmod(mod)); err != nil {
		return explain(err, "rmmod", name)
	}
	return nil
}

func (m *Machine) beginRmmod(name string) (*module, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	mod := m.module(name)
	switch {
	case mod == nil:
		return nil, fail(syscall.ENOENT, "the module is not loaded")
	case len(mod.usedBy) > 0:
		return nil, fail(syscall.EBUSY, "the module is needed by %s; unload that first", strings.Join(mod.users(), ","))
	case mod.state != ModuleLive:
		return nil, fail(syscall.EBUSY, "the module is being loaded or unloaded")
	case mod.files > 0:
		return nil, fail(syscall.EBUSY, "%d open files need the module; close them first", mod.files)
	}
	mod.state = ModuleUnloading
	return mod, nil
}

// endRmmod takes away the devices that the module has left behind, and the
// module. Preconditions: it is being unloaded, so that it registers nothing
// more.
func (m *Machine) endRmmod(mod *module) error {
	var errs []error
	for _, d := range m.list() {
		if d.owner == mod {
			if err := m.Unregister(d.name); err != nil && !errors.Is(err, syscall.ENOENT) {
				errs = append(errs, err)
			}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	mod.gone = true
	same := func(other *module) bool { return other == mod }
	m.modules = slices.DeleteFunc(m.modules, same)
	for _, need := range mod.needs {
		need.usedBy = slices.DeleteFunc(need.usedBy, same)
	}
	return errors.Join(errs...)
}

// Lsmod lists the loaded modules, the latest first.
func (m *Machine) Lsmod() []ModuleInfo {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]ModuleInfo, 0, len(m.modules))
	for _, mod := range slices.Backward(m.modules) {
		list = append(list, mod.info())
	}
	return list
}

// info describes the module. Preconditions, here and below: Machine.mu is held.
func (mod *module) info() ModuleInfo {
	return ModuleInfo{
		Name: mod.Name, Size: mod.Size, Refs: mod.files + len(mod.usedBy), UsedBy: mod.users(), State: mod.state,
	}
}

func (mod *module) users() []string {
	var names []string
	for _, u := range slices.Backward(mod.usedBy) {
		names = append(names, u.Name)
	}
	return names
}

// module finds a loaded module.
func (m *Machine) module(name string) *module {
	i := slices.IndexFunc(m.modules, func(mod *module) bool { return mod.Name == name })
	if i < 0 {
		return nil
	}
	return m.modules[i]
}

// moduleHold is one open file's hold on a module. The zero value holds nothing.
type moduleHold struct{ module *module } // guarded by Machine.mu

// getLocked is try_module_get: false when the module is about to go. A nil
// module, that of built-in parts, can always be had. Preconditions: mu is held.
func (m *Machine) getLocked(h *moduleHold, mod *module) bool {
	if mod == nil {
		return true
	}
	if mod.gone || mod.state == ModuleUnloading {
		return false
	}
	mod.files++
	h.module = mod
	return true
}

// share is __module_get: another hold on the module that from holds, which the
// caller knows to be held.
func (m *Machine) share(h, from *moduleHold) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if mod := from.module; mod != nil {
		mod.files++
		h.module = mod
	}
}

// put is module_put, once.
func (m *Machine) put(h *moduleHold) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.putLocked(h)
}

func (m *Machine) putLocked(h *moduleHold) {
	if h.module != nil {
		h.module.files--
		h.module = nil
	}
}
