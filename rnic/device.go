package rnic

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/rnic/drive"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/engine/path"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Device is a soft RNIC with one port. Its methods are safe for concurrent use.
type Device struct {
	name     string
	link     link.Link
	near     link.Near // or nil: below link
	caps     link.Caps
	mtu      abi.MTU
	askedMTU int // Config.MTU
	guid     uint64
	tuning   engine.Tuning
	paths    *path.Set     // guarded by mu
	stash    *engine.Stash // guarded by mu; nil: no extensions
	log      *slog.Logger  // or nil
	start    time.Time     // engine.Time 0
	cmPort   uint16        // Config.PeerPort
	announce func(service uint64) (end func(), err error)

	mu      deviceLock
	queues                      // guarded by mu: of queue pairs that wait for work
	regions *mem.Table          // guarded by mu
	qps     map[wire.QPN]*QP    // guarded by mu
	found   *QP                 // guarded by mu: of qps, whose packet came last
	pds     map[mem.PD]struct{} // guarded by mu
	nextPD  mem.PD              // guarded by mu
	cqs     int                 // guarded by mu
	srqs    uint32              // made so far, destroyed ones too
	ahs     addressTable        // guarded by mu
	groups  multicastTable      // guarded by mu
	done    []engine.Completion // guarded by mu: scratch of serveChanged
	wqe     *decoder            // guarded by mu: scratch of doorbells
	rang    wire.QPN            // guarded by mu: whose doorbell was the last
	transmitter
	gsi       gsi                 // guarded by mu
	strangers                     // guarded by mu
	final     finalAcks           // guarded by mu: queue pairs that have gone, and may be waited for
	bounced   returnedList        // has a lock of its own
	alarm     alarm               // guarded by mu
	retired   engine.Counters     // guarded by mu: of queue pairs that are gone
	closing   bool                // guarded by mu: the worker sends no more
	closed    bool                // guarded by mu
	lost      error               // guarded by mu: the link failed
	events    driver.DeviceEvents // nil, or set before the device is used
	down      atomic.Bool         // closed, or lost: doorbells ask check

	rx     receiver
	drive  drive.Driver
	worked atomic.Uint64 // how often the worker woke, for tests

	kick  chan struct{} // to the worker: there is something to send
	quit  chan struct{} // closed: the worker ends
	procs sync.WaitGroup

	count struct {
		malformed  [wire.NumErrors]uint64 // guarded by mu; by wire.Error
		dropQPN    uint64                 // guarded by mu
		cqOverflow uint64                 // guarded by mu
	}
}

var _ driver.Device = (*Device)(nil)

// New starts a device on c.Link. Without a name or a link, or with an MTU that
// does not fit the link, it returns an error that Is EINVAL and leaves the link
// alone.
func New(c Config) (*Device, error) {
	if c.Name == "" || c.Link == nil {
		return nil, fmt.Errorf("rnic: a device needs a name and a link: %w", syscall.EINVAL)
	}
	caps := c.Link.Caps()
	mtu, err := activeMTU(c.MTU, caps)
	if err != nil {
		return nil, fmt.Errorf("rnic: device %s on %v: %w", c.Name, caps.Local, err)
	}
	secret := seeds(c.Seed)
	d := &Device{
		name: c.Name, link: c.Link, near: c.Near, caps: caps, mtu: mtu, askedMTU: c.MTU, log: c.Logger,
		guid:     cmp.Or(c.GUID, newGUID(secret())),
		tuning:   tune(c.Tuning, caps),
		start:    time.Now(),
		cmPort:   cmp.Or(c.PeerPort, caps.Local.Port()),
		announce: c.Announce,
		paths:    path.NewSet(pathLimit(c.Tuning, caps), nil),
		regions:  mem.NewTable(secret()),
		qps:      make(map[wire.QPN]*QP),
		pds:      make(map[mem.PD]struct{}),
		done:     make([]engine.Completion, 64),
		wqe:      new(decoder),
		final:    finalAcks{next: noAlarm},
		kick:     make(chan struct{}, 1),
		quit:     make(chan struct{}),
	}
	if !c.NoExtensions {
		d.stash = engine.NewStash()
	}
	d.strangers = newStrangers(secret(), caps.Local)
	d.gsi = newGSI(c.CM, d, rand.NewChaCha8(secret()))
	d.rx.in = make([]link.Packet, max(caps.BatchSize, 1))
	d.drive.Init((*driven)(d), d.link, d.quit)
	d.mu.serve, d.mu.rest = d.serveNotes, d.wakeWorker
	d.transmitter = transmitter{sent: sync.NewCond(&d.mu.Mutex), batch: takeBatch(max(caps.BatchSize, 1))}
	d.alarm = newAlarm()
	if d.near != nil {
		d.near.SetGone(d.peerGone)
	}
	d.link.SetUndelivered(d.undelivered)
	d.procs.Go(d.drive.Listen)
	d.procs.Go(d.work)
	return d, nil
}

// SetEvents implements driver.EventSource: the port's one event is PORT_ERR,
// when the link has failed.
func (d *Device) SetEvents(e driver.DeviceEvents) { d.events = e }

// now is the engine's clock. It begins at 1, because 0 means no time to the
// engine.
func (d *Device) now() engine.Time { return engine.Time(1 + time.Since(d.start)) }

// Name implements driver.Device.
func (d *Device) Name() string { return d.name }

// DriverID implements driver.Device: the rings are rxe's.
func (d *Device) DriverID() uint32 { return uint32(abi.DriverRXE) }

// NetDev implements driver.Device.
func (d *Device) NetDev() string { return d.caps.NetDev }

// Addr is the address and UDP port on which the device answers.
func (d *Device) Addr() netip.AddrPort { return d.caps.Local }

// GIDs implements driver.Device: one entry, the link's address.
func (d *Device) GIDs(port uint8) []driver.GIDEntry {
	if port != 1 {
		return nil
	}
	return []driver.GIDEntry{{Index: 0, GID: gidOf(d.caps.Local.Addr()), Type: uint32(abi.GIDTypeRoCEv2), NetDev: d.caps.NetDev, IfIndex: uint32(d.caps.IfIndex)}}
}

// check returns the error of a closed or broken device. Preconditions: mu is
// held.
func (d *Device) check() error {
	switch {
	case d.closed:
		return fmt.Errorf("rnic: device %s is closed: %w", d.name, syscall.ENODEV)
	case d.lost != nil:
		return fmt.Errorf("rnic: device %s lost its link (%v): %w", d.name, d.lost, syscall.EIO)
	}
	return nil
}

// closeBatches is how many batches Close still sends: acknowledgements mostly.
const closeBatches = 8

// Close implements driver.Device: it sends the acknowledgements that are owed,
// lingers for peers that may wait for one (acks.go), closes the link and
// stops the goroutines. It is idempotent.
func (d *Device) Close() error {
	d.mu.Lock()
	if d.closing {
		d.mu.Unlock()
		d.procs.Wait()
		return nil
	}
	d.closing = true
	for d.sending {
		d.sent.Wait()
	}
	d.keepFinalAcks()
	d.gsi.close(d.now())
	d.takeNotes()
	d.releaseAcks()
	d.transmit(closeBatches)
	d.keepFinalAcks() // what was acknowledged with that
	d.linger()
	d.closed = true
	d.down.Store(true)
	d.alarm.Stop()
	d.mu.Unlock()
	close(d.quit)
	err := d.link.Close()
	d.procs.Wait()
	d.drive.End()
	d.drive.Receiver.Lock()
	_, _ = d.link.Recv(d.rx.in) // nothing of the last batch is in use any more
	d.drive.Receiver.Unlock()
	d.mu.Lock()
	for d.sending {
		d.sent.Wait()
	}
	giveBatch(d.batch)
	d.batch = nil
	d.mu.Unlock()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return err
}
