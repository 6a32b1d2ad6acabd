package cm

import (
	"container/list"
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Manager is the communication manager of one port. Its methods must not be
// called concurrently. Errors wrap a syscall.Errno.
type Manager struct {
	cfg      Config
	counters Counters

	conns      map[wire.CommID]*conn
	remotes    map[remoteID]*conn  // by the peer's identifier, from when it is known
	qpns       map[remoteQPN]*conn // by the peer's queue pair, until TIMEWAIT
	questions  map[question]*conn  // SIDR_REQs that came, by the key that tells them apart
	services   map[wire.ServiceID][]*Listener
	listeners  map[ListenerID]*Listener
	nextListen ListenerID
	vacant     map[wire.ServiceID]Time // services that lost their listener, and until when requests are held
	held       []held

	timers timerHeap
	linger lingering
	out    []Datagram
	events []Event
	credit int // see spend
}

// remoteID is a communication identifier of a peer.
type remoteID struct {
	addr netip.Addr
	guid uint64
	id   wire.CommID
}

// remoteQPN is a queue pair of a peer.
type remoteQPN struct {
	addr netip.Addr
	guid uint64
	qpn  wire.QPN
}

// question is the key of a SIDR_REQ and its copies.
type question struct {
	peer    netip.AddrPort
	id      wire.CommID
	tid     uint64
	service wire.ServiceID
}

// New makes a manager without connections.
func New(cfg Config) *Manager {
	return &Manager{
		cfg:       cfg.withDefaults(),
		conns:     make(map[wire.CommID]*conn),
		remotes:   make(map[remoteID]*conn),
		qpns:      make(map[remoteQPN]*conn),
		questions: make(map[question]*conn),
		services:  make(map[wire.ServiceID][]*Listener),
		listeners: make(map[ListenerID]*Listener), vacant: make(map[wire.ServiceID]Time), credit: maxCredit,
	}
}

// transaction is the identifier of a new transaction.
func (m *Manager) transaction() uint64 { return m.cfg.Random.Uint64() }

// psn is the first packet sequence number of a direction.
func (m *Manager) psn() wire.PSN { return wire.PSN(m.cfg.Random.Uint64()) & wire.MaxPSN }

// conn is a connection, or a question for a queue pair of datagrams.
type conn struct {
	id, remote wire.CommID
	state      State
	orphan     bool      // destroyed by its owner: no more events, and it goes by itself
	sidr       bool      // a question: no message of connections is about it
	listener   *Listener // of a request without an answer
	waiting    bool      // counts against the listener's backlog

	guid     uint64 // the peer's
	tid      uint64
	service  wire.ServiceID
	src      netip.AddrPort
	dst      netip.Addr
	localQPN wire.QPN
	attr     Attr
	hops     int // redirections that were followed
	refusals int // copies of the message that came back

	sending   Datagram   // the message that is repeated: REQ, REP, DREQ; or the last answer, which is replayed
	sentAt    Time       // when sending left; 0: it was repeated, or an MRA came
	suspicion *suspicion // that it is stale
	trusted   Time       // until when none is raised

	replay   bool           // sending answers repeated messages
	quiet    bool           // no TimeWaitExit
	timeout  wire.CMTimeout // of the peer's answers
	retries  uint8
	tries    int
	interval Duration
	resend   Time // 0: not
	giveUp   Time // 0: never
	limit    Time // beyond which no MRA moves giveUp

	heap   int           // index in timers, -1: none
	linger *list.Element // nil: not in lingering
}

// newConn makes a connection and gives it an identifier that no other has.
func (m *Manager) newConn() (*conn, error) {
	if len(m.conns)-m.linger.Len() >= m.cfg.MaxConns {
		return nil, fmt.Errorf("cm: no room for more than %d connections: %w", m.cfg.MaxConns, syscall.ENOMEM)
	}
	id := wire.CommID(m.cfg.Random.Uint64())
	for id == 0 || m.conns[id] != nil {
		id = wire.CommID(m.cfg.Random.Uint64())
	}
	c := &conn{id: id, heap: -1}
	m.conns[c.id] = c
	return c, nil
}

// lookup returns a connection that has an owner.
func (m *Manager) lookup(id wire.CommID) (*conn, error) {
	c := m.conns[id]
	if c == nil || c.orphan {
		return nil, fmt.Errorf("cm: no connection %v: %w", id, syscall.ENOENT)
	}
	return c, nil
}

// wrongState is the answer to a call that does not fit the state.
func (c *conn) wrongState(call string) error {
	return fmt.Errorf("cm: connection %v cannot %s in state %v: %w", c.id, call, c.state, syscall.EINVAL)
}

// forget takes c out of everything.
func (m *Manager) forget(c *conn) {
	m.unregister(c)
	m.answered(c)
	m.timers.remove(c)
	m.linger.remove(c)
	delete(m.conns, c.id)
	c.state = Idle
}

// register makes c known by the peer's identifier and queue pair.
func (m *Manager) register(c *conn) {
	m.remotes[c.remoteID()] = c
	m.qpns[c.remoteQPN()] = c
}

// unregister is the reverse.
func (m *Manager) unregister(c *conn) {
	if key := c.remoteID(); m.remotes[key] == c {
		delete(m.remotes, key)
	}
	m.unregisterQPN(c)
	if key := c.question(); c.sidr && m.questions[key] == c {
		delete(m.questions, key)
	}
}

func (m *Manager) unregisterQPN(c *conn) {
	if key := c.remoteQPN(); m.qpns[key] == c {
		delete(m.qpns, key)
	}
}

func (c *conn) remoteID() remoteID { return remoteID{wire.Bare(c.attr.Peer.Addr()), c.guid, c.remote} }

func (c *conn) question() question { return question{c.attr.Peer, c.remote, c.tid, c.service} }

func (c *conn) remoteQPN() remoteQPN {
	return remoteQPN{wire.Bare(c.attr.Peer.Addr()), c.guid, c.attr.RemoteQPN}
}

// report raises an event, unless c has lost its owner.
func (m *Manager) report(c *conn, e Event) {
	if c.orphan {
		return
	}
	e.Conn = c.id
	m.events = append(m.events, e)
}

// Event takes the oldest event out; false when there is none.
func (m *Manager) Event() (Event, bool) {
	if len(m.events) == 0 {
		m.events = nil
		return Event{}, false
	}
	e := m.events[0]
	m.events[0] = Event{}
	m.events = m.events[1:]
	return e, true
}

// Transmit takes the oldest datagram out that shall leave; false when there is
// none. A datagram that cannot be sent may be dropped, as if the network had.
func (m *Manager) Transmit() (Datagram, bool) {
	if len(m.out) == 0 {
		m.out = nil
		return Datagram{}, false
	}
	d := m.out[0]
	m.out = m.out[1:]
	return d, true
}

// Pending reports whether Transmit has something.
func (m *Manager) Pending() bool { return len(m.out) > 0 }

// State returns a connection's state; Idle where there is no such connection.
func (m *Manager) State(id wire.CommID) State {
	if c := m.conns[id]; c != nil {
		return c.state
	}
	return Idle
}

// Attr returns the attributes for a connection's queue pair. It is complete
// from ConnectRequest or ConnectResponse on; before, ENOENT tells of no
// connection and EINVAL of one that is not so far.
func (m *Manager) Attr(id wire.CommID) (Attr, error) {
	c, err := m.lookup(id)
	if err != nil {
		return Attr{}, err
	}
	switch c.state {
	case Idle, ReqSent, DreqSent, TimeWait, SidrReqSent, SidrReqRcvd:
		return Attr{}, c.wrongState("tell its attributes")
	}
	return c.attr, nil
}

// QPN is the number of a connection's own queue pair; 0 if it has none yet.
func (m *Manager) QPN(id wire.CommID) wire.QPN {
	if c, err := m.lookup(id); err == nil {
		return c.localQPN
	}
	return 0
}

// Conns returns the connections that have an owner, in the order of their
// identifiers.
func (m *Manager) Conns() []wire.CommID {
	var ids []wire.CommID
	for id, c := range m.conns {
		if !c.orphan {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Len returns how many connections there are in any state, and how many of them
// linger: in TIMEWAIT, or destroyed and on their way there.
func (m *Manager) Len() (all, lingering int) { return len(m.conns), m.linger.Len() }

// Counters gives access to the counters, which only grow.
func (m *Manager) Counters() *Counters { return &m.counters }
