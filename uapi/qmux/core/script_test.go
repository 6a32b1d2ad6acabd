package core

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	scripts "github.com/rdmashim/rdmashim/tests/script"
	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
)

// TestScripts plays testdata/*.txt. testdata/README.md has the commands.
func TestScripts(t *testing.T) {
	scripts.Play(t, func(t *testing.T) scripts.Player { return &script{t: t} })
}

// script is a pair and the lines that it has led to.
type script struct {
	t     *testing.T
	p     *pair
	lines []string
}

// Do carries out a command: connect, which begins with a new pair, or another.
func (s *script) Do(command string) error {
	words := strings.Fields(command)
	if words[0] != "connect" {
		return s.do(words)
	}
	s.p = nil
	s.connect(s.t, words[1:])
	return nil
}

// Results returns what the commands led to.
func (s *script) Results() ([]string, error) {
	lines := s.lines
	s.lines = nil
	return lines, nil
}

func (s *script) say(format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

// connect makes a pair whose configurations are changed by words such as
// stream=1000, for both sides, or a.stream=1000.
func (s *script) connect(t *testing.T, words []string) {
	side := "a."
	s.p = newPair(t, func(cfg *Config) {
		for _, word := range words {
			key, value, _ := strings.Cut(word, "=")
			if len(key) > 2 && key[1] == '.' {
				if !strings.HasPrefix(key, side) {
					continue
				}
				key = key[2:]
			}
			n, err := strconv.Atoi(value)
			require.NoError(t, err, word)
			switch key {
			case "draft":
				cfg.Draft = wire.Draft(n)
			case "stream":
				cfg.StreamWindow, cfg.MaxStreamWindow = uint64(n), uint64(n)
			case "window":
				cfg.Window, cfg.MaxWindow = uint64(n), uint64(n)
			case "bidi":
				cfg.MaxStreamsBidi = uint64(n)
			case "uni":
				cfg.MaxStreamsUni = uint64(n)
			case "idle":
				cfg.IdleTimeout = Duration(n) * Second
			case "keepalive":
				cfg.KeepAlive = Duration(n) * Second
			case "split":
			default:
				t.Fatalf("connect knows no %s", key)
			}
			if key == "split" && s.p != nil {
				s.p.split = n
			}
		}
		side = "b."
	})
	s.p.seen = func(from *Conn, frames []wire.Frame) {
		words := make([]string, len(frames))
		for i, f := range frames {
			words[i] = f.String()
		}
		s.say("%s %s", map[*Conn]string{s.p.a: "a>b", s.p.b: "b>a"}[from], strings.Join(words, " | "))
	}
}

// do carries one command out.
func (s *script) do(words []string) error {
	p := s.p
	arg := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(arg(i))
		return n
	}
	c := map[string]*Conn{"a": p.a, "b": p.b}[arg(1)]
	id := wire.StreamID(number(2))
	var err error
	switch words[0] {
	case "run":
		p.run()
		s.events("a", p.a)
		s.events("b", p.b)
	case "step":
		if !p.step(c) {
			s.say("%s has nothing to send", arg(1))
		}
	case "advance":
		p.advance(Duration(number(1)) * Millisecond)
		s.events("a", p.a)
		s.events("b", p.b)
	case "open":
		if id, ok := c.Open(p.now, arg(2) == "uni"); ok {
			s.say("%s: opened %d", arg(1), id)
		} else {
			s.say("%s: no stream", arg(1))
		}
	case "accept":
		if id, ok := c.Accept(arg(2) == "uni"); ok {
			s.say("%s: accepted %d", arg(1), id)
		} else {
			s.say("%s: no stream", arg(1))
		}
	case "write":
		err = c.Write(id, make([]byte, number(3)), arg(4) == "fin")
	case "withdraw":
		s.say("%s: withdrew %d", arg(1), c.Withdraw(id))
	case "read":
		n, failed := c.Read(id, make([]byte, number(3)))
		s.say("%s: read %d of %d, %v", arg(1), n, id, failed)
	case "reset":
		err = c.Reset(id, uint64(number(3)))
	case "reliable":
		s.say("%s: reliable %v", arg(1), c.SetReliable(id))
	case "stop":
		err = c.Stop(id, uint64(number(3)))
	case "priority":
		err = c.SetPriority(id, int8(number(3)), arg(4) != "whole")
	case "datagram":
		err = c.SendDatagram(make([]byte, number(2)))
	case "ping":
		c.Ping()
	case "close":
		c.Close(p.now, uint64(number(2)), strings.Join(words[3:], " "))
	case "end":
		c.ReceiveEnd()
	case "hear":
		p.give(c, unhex(p.t, strings.Join(words[2:], "")))
	default:
		return fmt.Errorf("no such command")
	}
	if err != nil {
		s.say("%s: %v", arg(1), err)
	}
	return nil
}

func (s *script) events(name string, c *Conn) {
	for _, e := range c.Events() {
		s.say("%s: %s", name, map[EventKind]string{
			EventReady:        "ready",
			EventAccept:       fmt.Sprintf("may accept, uni %v", e.Stream.Uni()),
			EventOpen:         fmt.Sprintf("may open, uni %v", e.Stream.Uni()),
			EventReadable:     fmt.Sprintf("%d readable", e.Stream),
			EventWritable:     fmt.Sprintf("%d writable", e.Stream),
			EventFinished:     fmt.Sprintf("%d finished", e.Stream),
			EventDatagram:     "a datagram",
			EventDatagramRoom: "room for datagrams",
			EventClosed:       fmt.Sprint(c.Cause()),
		}[e.Kind])
	}
}
