package main

import (
	"encoding/json"
	"fmt"
	"io"
	"sort"
	"strings"
	"time"
)

// side describes one end's device: what was chosen, and why.
type side struct {
	Device  string `json:"device"`
	Address string `json:"address"`
	GID     string `json:"gid"`
	MTU     int    `json:"mtu"`
	Note    string `json:"note,omitempty"`
}

// report is what a transfer yields. Its JSON keys are stable.
type report struct {
	ServerPID           int               `json:"server_pid"`
	ClientPID           int               `json:"client_pid"`
	File                string            `json:"file"`
	SHA256Source        string            `json:"sha256_source"`
	SHA256Server        string            `json:"sha256_server"`
	SHA256Readback      string            `json:"sha256_readback"`
	Bytes               int64             `json:"bytes"`
	Goodput             float64           `json:"goodput_bytes_per_second"`
	ReadGoodput         float64           `json:"read_goodput_bytes_per_second"`
	WriteSeconds        float64           `json:"write_seconds"`
	ReadSeconds         float64           `json:"read_seconds"`
	AtomicBefore        uint64            `json:"atomic_before"`
	AtomicAfter         uint64            `json:"atomic_after"`
	Seed                uint64            `json:"seed,omitempty"`
	ServerDevice        side              `json:"server_device"`
	ClientDevice        side              `json:"client_device"`
	Server              map[string]uint64 `json:"server"`
	Client              map[string]uint64 `json:"client"`
	writes, reads       int
	writeTime, readTime time.Duration
}

// check compares what must be equal.
func (r *report) check() error {
	switch {
	case r.SHA256Server != r.SHA256Source:
		return fmt.Errorf("the server's memory differs from %s: SHA-256 %s, not %s", r.File, r.SHA256Server, r.SHA256Source)
	case r.SHA256Readback != r.SHA256Source:
		return fmt.Errorf("what was read back differs from %s: SHA-256 %s, not %s", r.File, r.SHA256Readback, r.SHA256Source)
	}
	return nil
}

func (r *report) json(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

func (r *report) text(w io.Writer) error {
	var b strings.Builder
	row := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "%-9s "+format+"\n", append([]any{what}, args...)...)
	}
	device := func(what string, pid int, s side) {
		row(what, "pid %d, %s at %s, GID %s, MTU %d", pid, s.Device, s.Address, s.GID, s.MTU)
		if s.Note != "" {
			row("", "%s", s.Note)
		}
	}
	device("server", r.ServerPID, r.ServerDevice)
	device("client", r.ClientPID, r.ClientDevice)
	row("source", "%s, %s", r.File, size(r.Bytes))
	row("WRITE", "%s in %d requests, %s/s", size(r.Bytes), r.writes, size(int64(r.Goodput)))
	row("SEND", "message with immediate delivered and answered")
	row("READ", "%s in %d requests, %s/s", size(r.Bytes), r.reads, size(int64(r.ReadGoodput)))
	row("ATOMIC", "fetch-and-add on the server's memory: %d, then %d", r.AtomicBefore, r.AtomicAfter)
	row("SHA-256", "source    %s", r.SHA256Source)
	row("", "server    %s", r.SHA256Server)
	row("", "read back %s", r.SHA256Readback)
	if r.Seed != 0 {
		row("seed", "%d (--seed %d hits the same packets again)", r.Seed, r.Seed)
	}
	b.WriteString(counterTable(r.Client, r.Server))
	if err := r.check(); err == nil {
		b.WriteString("all equal\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// counterTable lists the counters of both sides that are not zero.
func counterTable(client, server map[string]uint64) string {
	names := map[string]bool{}
	for n, v := range client {
		names[n] = names[n] || v != 0
	}
	for n, v := range server {
		names[n] = names[n] || v != 0
	}
	var list []string
	for n, used := range names {
		if used {
			list = append(list, n)
		}
	}
	sort.Strings(list)
	var b strings.Builder
	fmt.Fprintf(&b, "%-28s %14s %14s\n", "counter", "client", "server")
	for _, n := range list {
		fmt.Fprintf(&b, "%-28s %14d %14d\n", n, client[n], server[n])
	}
	return b.String()
}

// print writes the report to w for a person or a machine.
func (r *report) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return r.json(w)
	}
	return r.text(w)
}
