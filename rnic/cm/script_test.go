package cm_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/cm"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
	scripts "github.com/rdmashim/rdmashim/tests/script"
)

// TestScripts plays testdata/*.txt. A command "hosts" begins a new world,
// "more" adds to it.
func TestScripts(t *testing.T) {
	scripts.Play(t, func(t *testing.T) scripts.Player { return &script{t: t} })
}

// script is the state of one.
type script struct {
	t     *testing.T
	w     *world
	log   []string
	spoil []spoiled // treatments of datagrams to come
	cut   bool      // all are lost
}

// spoiled says that the next n datagrams of a kind are lost, doubled or late.
type spoiled struct {
	how, what string
	n         int
}

// Do carries out a command.
func (s *script) Do(command string) error {
	s.command(strings.Fields(command))
	return nil
}

// Results returns what the commands led to.
func (s *script) Results() ([]string, error) {
	log := s.log
	s.log = nil
	return log, nil
}

func (s *script) say(format string, args ...any) {
	at := time.Duration(s.w.now - 1)
	s.log = append(s.log, fmt.Sprintf("%-8v ", at)+fmt.Sprintf(format, args...))
}

func (s *script) world() {
	w := newWorld(s.t)
	s.w, s.spoil, s.cut = w, nil, false
	w.seen = func(f *flight) { s.say("%v", f) }
	w.fate = s.fate
	w.told = s.event
	w.probed = func(h *host) { s.say("%s asks its peer for a sign of life", h.name) }
}

// hosts adds hosts to the world.
func (s *script) hosts(options map[string]string, names []string) {
	cfg := cm.Config{}
	s.w.beside = nil
	for k, v := range options {
		if k == "beside" {
			s.w.beside = s.host(v)
			continue
		}
		n := must.Get(strconv.Atoi(v))(s.t)
		switch k {
		case "response":
			cfg.ResponseTimeout = wire.CMTimeout(n)
		case "retries":
			cfg.Retries = uint8(n)
		case "first":
			cfg.FirstRetry = cm.Duration(n) * cm.Millisecond
		case "mra":
			cfg.MRATimeout = wire.CMTimeout(n)
		case "linger":
			cfg.MaxLinger = n
		case "conns":
			cfg.MaxConns = n
		case "mtu":
			cfg.MTU = uint8(n)
		case "grace":
			cfg.Grace = cm.Duration(n) * cm.Millisecond
		case "port":
			cfg.UDPPort = uint16(n)
		default:
			s.t.Fatalf("no option %q", k)
		}
	}
	for _, name := range names {
		s.w.host(name, cfg)
	}
}

func (s *script) fate(f *flight) []cm.Duration {
	if s.cut {
		s.log[len(s.log)-1] += "  (lost)"
		return nil
	}
	for i := range s.spoil {
		p := &s.spoil[i]
		if p.n > 0 && strings.HasPrefix(f.String(), p.what) {
			p.n--
			s.log[len(s.log)-1] += "  (" + p.how + ")"
			switch p.how {
			case "lost":
				return nil
			case "twice":
				return []cm.Duration{hop, 2 * hop}
			}
			late := must.Get(time.ParseDuration(strings.TrimPrefix(p.how, "late ")))(s.t)
			return []cm.Duration{cm.Duration(late)}
		}
	}
	return []cm.Duration{hop}
}

func (s *script) event(h *host, e cm.Event) {
	name, ok := h.names[e.Conn]
	if !ok {
		name = s.name(h, e.Conn)
	}
	line := fmt.Sprintf("%s: %v", name, e.Kind)
	switch e.Kind {
	case cm.ConnectRequest:
		port, _ := e.Service.TCPPort()
		line += fmt.Sprintf(" port %d from %v to %v", port, e.Src, e.Dst)
	case cm.SIDRRequest:
		port, _ := e.Service.UDPPort()
		line += fmt.Sprintf(" port %d from %v to %v", port, e.Src, e.Dst)
	case cm.SIDRReply:
		line += fmt.Sprintf(" %d (%v)", e.Status, e.Status)
		if e.Status == wire.SIDRValid {
			line += fmt.Sprintf(" %v at %v, Q_Key %#x", e.Attr.RemoteQPN, e.Attr.Peer, e.QKey)
		}
	case cm.Rejected:
		line += fmt.Sprintf(" %d (%v)", e.Reason, e.Reason)
	case cm.Disconnected:
		if e.Reason != 0 {
			line += fmt.Sprintf(" %d (%v)", e.Reason, e.Reason)
		}
	}
	if p := strings.TrimRight(string(e.Private), "\x00"); p != "" {
		line += fmt.Sprintf(" %q", p)
	}
	s.say("%s", line)
}

// name names a connection after its host: a1, a2 …
func (s *script) name(h *host, id wire.CommID) string {
	name := fmt.Sprintf("%s%d", h.name, len(h.names)+1)
	h.names[id], h.ids[name] = name, id
	return name
}

func (s *script) host(name string) *host {
	for _, h := range s.w.hosts {
		if h.name == name {
			return h
		}
	}
	s.t.Fatalf("no host %q", name)
	return nil
}

// conn finds a connection by its name.
func (s *script) conn(name string) (*host, wire.CommID) {
	h := s.host(strings.TrimRight(name, "0123456789"))
	id, ok := h.ids[name]
	require.True(s.t, ok, "no connection %q", name)
	return h, id
}

func (s *script) failed(what string, err error) {
	if err != nil {
		var e syscall.Errno
		require.True(s.t, errors.As(err, &e), "%v", err)
		s.say("%s: %v", what, err)
	}
}

// command carries one out.
func (s *script) command(words []string) {
	options := map[string]string{}
	words = slices.DeleteFunc(words, func(w string) bool {
		k, v, ok := strings.Cut(w, "=")
		if ok {
			options[k] = v
		}
		return ok
	})
	verb, args := words[0], words[1:]
	switch verb {
	case "hosts", "more":
		if verb == "hosts" {
			s.world()
		}
		s.hosts(options, args)
		return
	case "lose", "double", "delay":
		s.spoilNext(verb, args, options)
		return
	case "cut":
		s.cut = true
		return
	case "mend":
		s.cut = false
		return
	case "run":
		s.w.run(forever)
		return
	case "advance":
		d := must.Get(time.ParseDuration(args[0]))(s.t)
		s.w.advance(cm.Duration(d))
		return
	case "state":
		s.states()
		return
	case "listen", "serve", "redirect", "refer", "connect", "resolve", "restart", "stop":
		s.onHost(verb, s.host(args[0]), args[1:], options)
		return
	}
	s.onConn(verb, args, options)
}

func (s *script) spoilNext(verb string, args []string, options map[string]string) {
	n := 1
	if v, ok := options["n"]; ok {
		n = must.Get(strconv.Atoi(v))(s.t)
	}
	how := map[string]string{"lose": "lost", "double": "twice", "delay": "late " + options["by"]}[verb]
	s.spoil = append(s.spoil, spoiled{how, strings.Join(args, " "), n})
}

func (s *script) onHost(verb string, h *host, args []string, options map[string]string) {
	number := func(text string) uint16 {
		n := must.Get(strconv.ParseUint(text, 10, 16))(s.t)
		return uint16(n)
	}
	switch verb {
	case "restart":
		h.down = false
		h.start()
	case "stop":
		h.down = true
	case "listen", "serve":
		service := wire.TCPService
		if verb == "serve" {
			service = wire.UDPService
		}
		backlog := 16
		if v, ok := options["backlog"]; ok {
			backlog = int(number(v))
		}
		var addr netip.Addr
		if v, ok := options["addr"]; ok {
			addr = netip.MustParseAddr(v)
		}
		_, err := h.m.Listen(service(number(args[0])), addr, backlog)
		s.failed("listen", err)
	case "redirect":
		_, err := h.m.Redirect(wire.TCPService(number(args[0])), number(options["port"]))
		s.failed("redirect", err)
	case "refer":
		_, err := h.m.Redirect(wire.UDPService(number(args[0])), number(options["port"]))
		s.failed("refer", err)
	case "resolve":
		to := s.host(args[0])
		id, err := h.m.Resolve(s.w.now, h.question(to, number(args[1]), options["private"]))
		if err == nil {
			s.name(h, id)
		}
		s.failed("resolve", err)
		h.settle()
	case "connect":
		p := h.params(s.host(args[0]), number(args[1]), options["private"])
		if v, ok := options["qpn"]; ok {
			p.QPN = wire.QPN(number(v))
		}
		if v, ok := options["mtu"]; ok {
			p.MTU = uint8(number(v))
		}
		id, err := h.m.Connect(s.w.now, p)
		if err == nil {
			s.name(h, id)
		}
		s.failed("connect", err)
		h.settle()
	}
}

func (s *script) onConn(verb string, args []string, options map[string]string) {
	h, id := s.conn(args[0])
	var err error
	switch verb {
	case "accept":
		p := h.acceptParams(options["private"])
		if v, ok := options["qpn"]; ok {
			p.QPN = wire.QPN(must.Get(strconv.Atoi(v))(s.t))
		}
		err = h.m.Accept(s.w.now, id, p)
	case "answer":
		p := cm.AnswerParams{QPN: 0x111, QKey: 0x1234567, Private: []byte(options["private"])}
		if v, ok := options["status"]; ok {
			p.Status = wire.SIDRStatus(must.Get(strconv.Atoi(v))(s.t))
		}
		err = h.m.Answer(s.w.now, id, &p)
	case "confirm":
		err = h.m.Confirm(id)
	case "reject":
		reason := wire.RejConsumer
		if v, ok := options["reason"]; ok {
			reason = wire.RejectReason(must.Get(strconv.Atoi(v))(s.t))
		}
		err = h.m.Reject(s.w.now, id, reason, []byte(options["private"]))
	case "disconnect":
		err = h.m.Disconnect(s.w.now, id)
	case "destroy":
		err = h.m.Destroy(s.w.now, id)
	case "take":
		err = h.m.Take(id)
	case "data":
		h.m.CommEstablished(id)
	default:
		s.t.Fatalf("no command %q", verb)
	}
	if err != nil { // identifiers are random; the script has its own names
		s.failed(args[0]+" "+verb, errorOf(err, id))
	}
	h.settle()
}

// errorOf is err without the connection's identifier.
func errorOf(err error, id wire.CommID) error {
	var e syscall.Errno
	_ = errors.As(err, &e)
	return fmt.Errorf("%s%w", strings.ReplaceAll(strings.TrimSuffix(err.Error(), e.Error()), " "+id.String(), ""), e)
}

// states says how many connections there are, and the states of those with
// names.
func (s *script) states() {
	for _, h := range s.w.hosts {
		all, lingering := h.m.Len()
		_, timer := h.m.NextTimeout()
		line := fmt.Sprintf("%s: %d, %d linger", h.name, all, lingering)
		if timer {
			line += ", timer"
		}
		for i := range len(h.names) {
			name := fmt.Sprintf("%s%d", h.name, i+1)
			line += fmt.Sprintf(", %s %v", name, h.m.State(h.ids[name]))
		}
		s.say("%s", line)
	}
}
