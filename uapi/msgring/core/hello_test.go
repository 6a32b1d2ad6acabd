package core

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/messages.golden anew")

// dirty returns an empty slice whose array is full of 0xa5, so that an
// unwritten byte shows.
func dirty() []byte { return bytes.Repeat([]byte{poison}, 256)[:0] }

func hello() Hello {
	return Hello{
		Mode: Bytes, Quantum: 1 << 10, Addr: 0x0102030405060708, RKey: 0x11121314, Ring: 256 << 10,
		Controls: Controls, Longest: 64<<10 - 4, Service: ServiceHash("echo"),
	}
}

func rpcHello() Hello {
	h := hello()
	h.Mode, h.Slots, h.Epoch = RPC, 0x2122, 0x31323334
	copy(h.Session[:], "0123456789abcdef")
	return h
}

func rpcAnswer() Hello {
	h := rpcHello()
	h.Instance, h.Lifetime, h.State = 0x4142434445464748, 60, SessionResumed
	return h
}

// TestGolden holds the bytes of every message.
func TestGolden(t *testing.T) {
	h, r, a := hello(), rpcHello(), rpcAnswer()
	messages := []struct {
		name string
		text []byte
	}{
		{"hello", h.Append(dirty(), false)},
		{"hello answer", h.Append(dirty(), true)},
		{"hello rpc", r.Append(dirty(), false)},
		{"hello rpc answer", a.Append(dirty(), true)},
		{"refusal", (&Refusal{Version: 1, Reason: ReasonService, Text: "no such service"}).Append(dirty())},
	}
	for i, name := range []string{"credit", "fin", "reset"} {
		m := Control{Type: CREDIT + ControlType(i), Consumed: 0x0102030405060708, Argument: 0x1112131415161718}
		messages = append(messages, struct {
			name string
			text []byte
		}{name, m.Append(dirty())})
	}
	var got strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&got, "%s: %d bytes\n%s", m.name, len(m.text), hex.Dump(m.text))
	}
	const file = "testdata/messages.golden"
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(got.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got.String())
}

func TestHelloReadsWhatItWrites(t *testing.T) {
	for _, c := range []struct {
		hello  Hello
		answer bool
	}{{hello(), false}, {hello(), true}, {rpcHello(), false}, {rpcAnswer(), true}} {
		text := c.hello.Append(nil, c.answer)
		// The connection manager puts zeroes behind it.
		for _, behind := range []int{0, 140} {
			got := Hello{Instance: 9, Lifetime: 9, State: 9}
			require.NoError(t, got.Parse(append(text[:len(text):len(text)], make([]byte, behind)...), c.answer))
			require.Equal(t, c.hello, got)
		}
		for n := range len(text) {
			require.Error(t, new(Hello).Parse(text[:n], c.answer), "the first %d bytes", n)
		}
	}
}

func TestHelloRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(b []byte)
		reason Reason
		errno  syscall.Errno
		text   string
	}{
		{"magic", func(b []byte) { b[0]++ }, ReasonMagic, syscall.EPROTONOSUPPORT, "no hello"},
		{"version", func(b []byte) { b[4]++ }, ReasonVersion, syscall.EPROTONOSUPPORT, "version 2, this end 1"},
		{"short", func(b []byte) { b[5] = 55 }, ReasonLimits, syscall.EINVAL, "says it has 55"},
		{"long", func(b []byte) { b[5] = 57 }, ReasonLimits, syscall.EINVAL, "says it has 57"},
		{"mode", func(b []byte) { b[6] = 2 }, ReasonMode, syscall.EPROTONOSUPPORT, "mode 2"},
		{"quantum too large to say", func(b []byte) { b[7] = 32 }, ReasonLimits, syscall.EINVAL, "2^32"},
		{"few quanta", func(b []byte) { b[7] = 15 }, ReasonLimits, syscall.EINVAL, "quanta of 32768"},
		{"many quanta", func(b []byte) { b[7] = 5 }, ReasonLimits, syscall.EINVAL, "quanta of 32"},
		{"ring beyond the last address", func(b []byte) { copy(b[8:], "\xff\xff\xff\xff\xff\xff") }, ReasonLimits, syscall.EINVAL, "beyond the last address"},
		{"no ring", func(b []byte) { b[21] = 0 }, ReasonLimits, syscall.EINVAL, "a ring of 0 bytes"},
		{"ring that is no power of two", func(b []byte) { b[21] = 3 }, ReasonLimits, syscall.EINVAL, "power of two"},
		{"small ring", func(b []byte) { copy(b[20:], []byte{0, 0, 0x20, 0}) }, ReasonLimits, syscall.EINVAL, "a ring of 8192 bytes"},
		{"large ring", func(b []byte) { b[20] = 8 }, ReasonLimits, syscall.EINVAL, "a ring of"},
		{"controls", func(b []byte) { b[25] = 15 }, ReasonLimits, syscall.EINVAL, "15 receives"},
		{"no chunk", func(b []byte) { copy(b[28:], []byte{0, 0, 0, 0}) }, ReasonLimits, syscall.EINVAL, "longest chunk of 0"},
		{"long chunk", func(b []byte) { copy(b[28:], []byte{0, 1, 0, 1}) }, ReasonLimits, syscall.EINVAL, "1 … 65536"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := hello()
			b := h.Append(nil, false)
			c.change(b)
			err := new(Hello).Parse(b, false)
			var refusal *Refusal
			require.ErrorAs(t, err, &refusal)
			require.Equal(t, c.reason, refusal.Reason)
			require.ErrorIs(t, err, c.errno)
			require.ErrorContains(t, err, c.text)

			told, ok := ParseRefusal(append(refusal.Append(nil), make([]byte, 30)...))
			require.True(t, ok)
			require.Equal(t, refusal, told)
		})
	}
	require.ErrorContains(t, new(Hello).Parse(nil, false), "no hello")
	r := rpcHello()
	require.ErrorContains(t, new(Hello).Parse(append(r.Append(nil, false), make([]byte, 100)...), true), "in mode 3 it has 69")
}

func TestHelloMeets(t *testing.T) {
	mine, peer := hello(), hello()
	require.NoError(t, mine.Meets(&peer))
	peer.Service++
	require.ErrorIs(t, mine.Meets(&peer), syscall.ECONNREFUSED)
	peer.Service = 0
	require.NoError(t, mine.Meets(&peer), "0 asks for any service")
	peer.Mode = RPC
	require.ErrorIs(t, mine.Meets(&peer), syscall.EPROTONOSUPPORT)
}

func TestRefusal(t *testing.T) {
	long := &Refusal{Version: 1, Reason: ReasonBusy, Text: strings.Repeat("ä", 100)}
	b := long.Append(nil)
	require.LessOrEqual(t, len(b), 148)
	got, ok := ParseRefusal(b)
	require.True(t, ok)
	require.Equal(t, strings.Repeat("ä", MaxRefusalText/2), got.Text)
	require.ErrorIs(t, got, syscall.EAGAIN)

	_, ok = ParseRefusal([]byte("RDMS\x01"))
	require.False(t, ok)
	_, ok = ParseRefusal(make([]byte, 148))
	require.False(t, ok)
	unknown, ok := ParseRefusal([]byte("RDMS\x01\x63"))
	require.True(t, ok)
	require.ErrorIs(t, unknown, syscall.EINVAL)
	require.EqualError(t, unknown, "hello refused (reason 99): ")
}

func TestServiceHash(t *testing.T) {
	require.Zero(t, ServiceHash(""))
	require.Equal(t, uint32(0xe40c292c), ServiceHash("a"))
	require.NotEqual(t, ServiceHash("h2"), ServiceHash("h2\x00"))
}

func TestDefaultQuantumIsAllowed(t *testing.T) {
	for ring := uint32(MinRing); ring <= MaxRing; ring *= 2 {
		h := hello()
		h.Ring, h.Quantum, h.Longest = ring, DefaultQuantum(ring), LongestChunk(ring)
		require.NoError(t, h.Check(), "%d", ring)
	}
	require.Equal(t, uint32(MaxChunk), LongestChunk(MaxRing))
}

// FuzzHello: any private data is refused, or is a ring that an end may have,
// and says itself again.
func FuzzHello(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte, answer bool) {
		var h Hello
		if err := h.Parse(b, answer); err != nil {
			var refusal *Refusal
			if !errors.As(err, &refusal) || len(refusal.Append(nil)) > 148 {
				t.Fatal(err)
			}
			return
		}
		if err := h.Check(); err != nil {
			t.Fatal(err)
		}
		var again Hello
		if err := again.Parse(h.Append(nil, answer), answer); err != nil || again != h {
			t.Fatalf("%v: %+v became %+v", err, h, again)
		}
	})
}
