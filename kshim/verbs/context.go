package verbs

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
)

// Context is an open device: one uverbs file, its asynchronous event file and
// one completion channel. Its methods, and those of everything made from it,
// are safe for concurrent use.
type Context struct {
	kernel kshim.Kernel
	info   DeviceInfo
	cmd    *commander
	async  kshim.File
	comp   kshim.File
	compFD int32
	maxMsg uint32 // of port 1; the same on every port of the devices we know

	readers sync.WaitGroup
	done    chan struct{} // closed when Close begins
	nextKey atomic.Uint64 // user handles, and generations of queue pairs

	ctl    sync.RWMutex // shared by control calls, exclusive in Close
	closed bool         // guarded by ctl

	mu   sync.Mutex // guards the tables
	pds  map[*PD]struct{}
	mrs  map[*MR]struct{}
	ahs  map[*AH]struct{}
	mws  map[*MW]struct{}
	cqs  sync.Map        // of *CQ, by user handle: a kernel in this process looks here, too, and must not wait for mu
	qps  map[uint64]*QP  // by user handle
	srqs map[uint64]*SRQ // by user handle

	wakes atomic.Uint32 // how often waiters on any completion queue were woken
	turn  atomic.Uint32 // of the queue with which a WaitAny begins

	judge    kshim.Judge               // of completions, or nil; see SetJudge
	watchers map[*func(Event)]struct{} // of asynchronous events; guarded by mu
}

// Open opens a device by its name. A name that is not there is ENODEV; a device
// of a driver that is not spoken here is EPROTONOSUPPORT, and the error names
// the driver.
func Open(k kshim.Kernel, device string) (*Context, error) {
	fail := func(err error) (*Context, error) {
		return nil, &Error{Op: "open", Object: device, Err: err}
	}
	info, err := findDevice(k, device)
	if err != nil {
		return fail(err)
	}
	file, err := k.Open(info.Node)
	if err != nil {
		return fail(err)
	}
	if info.Driver == abi.DriverUnknown { // sysfs does not tell
		info.Driver = askDriver(file)
	}
	if err := info.spoken(); err != nil {
		file.Close()
		return fail(err)
	}
	c := &Context{
		kernel: k, info: info, cmd: newCommander(file),
		done: make(chan struct{}),
		pds:  map[*PD]struct{}{}, mrs: map[*MR]struct{}{}, ahs: map[*AH]struct{}{}, mws: map[*MW]struct{}{}, qps: map[uint64]*QP{}, srqs: map[uint64]*SRQ{},
	}
	if err := c.start(); err != nil {
		c.closeFiles()
		return fail(err)
	}
	c.readers.Go(c.readCompletions)
	c.readers.Go(c.readAsync)
	return c, nil
}

// start makes the kernel's side of the context and its event files.
func (c *Context) start() error {
	var resp abi.GetContextResp
	err := c.cmd.invoke(abi.CmdGetContext, &abi.GetContext{}, &resp, nil)
	if errors.Is(err, syscall.EINVAL) { // the kernel compares the driver's number
		if c.info.Driver = askDriver(c.cmd.file); c.info.Driver != abi.DriverRXE {
			return c.info.spoken()
		}
	}
	if err != nil {
		return fmt.Errorf("GET_CONTEXT: %w", err)
	}
	c.info.Driver = abi.DriverRXE
	if c.async, err = c.kernel.Adopt(int32(resp.AsyncFD)); err != nil {
		return fmt.Errorf("asynchronous event file: %w", err)
	}
	var comp abi.CreateCompChannelResp
	if err = c.cmd.invoke(abi.CmdCreateCompChannel, &abi.CreateCompChannel{}, &comp, nil); err != nil {
		return fmt.Errorf("CREATE_COMP_CHANNEL: %w", err)
	}
	c.compFD = int32(comp.FD)
	if c.comp, err = c.kernel.Adopt(c.compFD); err != nil {
		return fmt.Errorf("completion channel: %w", err)
	}
	port, err := c.cmd.queryPort(1)
	if err != nil {
		return fmt.Errorf("QUERY_PORT: %w", err)
	}
	c.maxMsg = port.MaxMsgSz
	return nil
}

// Device returns the facts of the device that are known without asking it.
func (c *Context) Device() DeviceInfo { return c.info }

// begin enters a control call; end leaves it. Close waits for those that are
// inside.
func (c *Context) begin() error {
	c.ctl.RLock()
	if c.closed {
		c.ctl.RUnlock()
		return errClosed
	}
	return nil
}

func (c *Context) end() { c.ctl.RUnlock() }

// call runs f as a control call and names its error.
func (c *Context) call(op, object string, f func() error) error {
	err := c.begin()
	if err == nil {
		err = f()
		c.end()
	}
	if err != nil {
		return &Error{Op: op, Object: object, Err: err}
	}
	return nil
}

// QueryDevice asks for the device's limits.
func (c *Context) QueryDevice() (attr DeviceAttr, err error) {
	err = c.call("query device", c.info.Name, func() (err error) {
		attr, err = c.cmd.queryDevice()
		return err
	})
	return attr, err
}

// QueryPort asks for the state of a port; ports count from 1. A port that does
// not exist is EINVAL.
func (c *Context) QueryPort(port uint8) (attr PortAttr, err error) {
	err = c.call("query port", fmt.Sprintf("%s port %d", c.info.Name, port), func() (err error) {
		attr, err = c.cmd.queryPort(port)
		return err
	})
	return attr, err
}

// GIDs reads the valid entries of a port's GID table.
func (c *Context) GIDs(port uint8) (list []GID, err error) {
	err = c.call("query GID table", fmt.Sprintf("%s port %d", c.info.Name, port), func() (err error) {
		list, err = c.gids(port)
		return err
	})
	return list, err
}

// Counters reads the counters of port 1 by name. A device without any has none.
func (c *Context) Counters() (counters map[string]uint64, err error) {
	err = c.call("read counters", c.info.Name, func() (err error) {
		counters, err = readCounters(c.kernel, sysIB+"/"+c.info.Name+"/ports/1/hw_counters")
		if errors.Is(err, syscall.ENOENT) {
			return nil
		}
		return err
	})
	return counters, err
}

// QueuePair is QueuePairs of one.
func (c *Context) QueuePair(num uint32) (line string, err error) {
	err = c.call("read a queue pair", c.info.Name, func() error {
		line, err = ReadAttr(c.kernel, path.Join(sysIB, c.info.Name, "ports/1/qp", strconv.FormatUint(uint64(num), 10)))
		return err
	})
	return line, err
}

// QueuePairs reads the mini kernel's reports on the device's queue pairs, of
// all contexts, by number: a line of JSON for each, as uapi/stats.QueuePair.
// ENOENT on Linux, which shows nothing.
func (c *Context) QueuePairs() (list []string, err error) {
	err = c.call("read queue pairs", c.info.Name, func() error {
		dir := sysIB + "/" + c.info.Name + "/ports/1/qp"
		names, err := c.kernel.ReadDir(dir)
		if err != nil {
			return err
		}
		slices.SortFunc(names, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
		for _, name := range names {
			text, err := ReadAttr(c.kernel, path.Join(dir, name))
			if err == nil {
				list = append(list, text)
			} else if !errors.Is(err, syscall.ENOENT) { // destroyed meanwhile
				return err
			}
		}
		return nil
	})
	return list, err
}

// Close destroys everything that was made from the context, in dependency
// order, and closes it. Waiters wake with net.ErrClosed; every later call
// answers net.ErrClosed and EBADF. A second Close does nothing.
func (c *Context) Close() error {
	c.ctl.Lock()
	defer c.ctl.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	close(c.done)
	var errs []error
	for mw := range c.mws { // before the queue pairs that bound them, which rdma_rxe could not free
		errs = append(errs, mw.dealloc())
	}
	for _, qp := range c.allQPs() {
		errs = append(errs, qp.leaveGroups(), qp.destroy(errClosed))
	}
	for _, s := range c.allSRQs() {
		errs = append(errs, s.destroy(errClosed))
	}
	for _, cq := range c.allCQs() {
		errs = append(errs, cq.destroy(errClosed))
	}
	for ah := range c.ahs {
		errs = append(errs, ah.destroy())
	}
	for mr := range c.mrs {
		errs = append(errs, mr.dereg())
	}
	for pd := range c.pds {
		errs = append(errs, pd.dealloc())
	}
	c.closeFiles()
	c.readers.Wait()
	c.abandon()
	if err := errors.Join(errs...); err != nil {
		return &Error{Op: "close", Object: c.info.Name, Err: err}
	}
	return nil
}

// closeFiles closes the files, the device last: it frees what the kernel still
// holds.
func (c *Context) closeFiles() {
	if c.comp != nil {
		c.comp.Close()
	}
	if c.async != nil {
		c.async.Close()
	}
	c.cmd.close()
}

// abandon drops objects that could not be destroyed one by one: the kernel let
// go of them when the file was closed.
func (c *Context) abandon() {
	for _, qp := range c.allQPs() {
		qp.drop(errClosed)
	}
	for _, s := range c.allSRQs() {
		s.drop(errClosed)
	}
	for _, cq := range c.allCQs() {
		cq.drop(errClosed)
	}
	for mr := range c.mrs {
		mr.drop()
	}
	clear(c.ahs)
	clear(c.mws)
	clear(c.pds)
}

func (c *Context) allQPs() []*QP {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.qps))
}

func (c *Context) allSRQs() []*SRQ {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.srqs))
}

func (c *Context) allCQs() (all []*CQ) {
	c.cqs.Range(func(_, cq any) bool {
		all = append(all, cq.(*CQ))
		return true
	})
	return all
}

// fewGIDs is how many entries a device's table has at most as a rule, of the
// thousand for which some have room.
const fewGIDs = 32

// gids asks by ioctl, or sysfs where the kernel has no such ioctl.
func (c *Context) gids(port uint8) ([]GID, error) {
	attr, err := c.cmd.queryPort(port)
	if err != nil {
		return nil, err
	}
	dev, err := c.cmd.queryDevice()
	if err != nil {
		return nil, err
	}
	// The table holds the entries of all ports. The ioctl's length is 16 bits
	// wide.
	entries := min(max(int(attr.GIDTblLen), 1)*max(int(dev.PhysPortCnt), 1), 0xffff/abi.GIDEntrySize)
	var table []byte
	var n uint64
	for _, room := range []int{min(entries, fewGIDs), entries} {
		table = make([]byte, room*abi.GIDEntrySize)
		addr, release := c.cmd.file.Pin(table)
		n, err = c.cmd.queryGIDTable(table, addr)
		release()
		if !errors.Is(err, syscall.EINVAL) { // it has more entries (core/cache.c: rdma_query_gid_table)
			break
		}
	}
	if errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.EPROTONOSUPPORT) {
		return SysfsGIDs(c.kernel, c.info.Name, port)
	}
	if err != nil {
		return nil, err
	}
	return parseGIDs(table, n, port)
}
