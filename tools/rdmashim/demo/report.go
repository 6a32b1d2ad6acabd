package demo

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
)

// Report is the result of a transfer. Its JSON keys are stable.
type Report struct {
	ServerPID      int               `json:"server_pid"`
	ClientPID      int               `json:"client_pid"`
	File           string            `json:"file"`
	SHA256Source   string            `json:"sha256_source"`
	SHA256Server   string            `json:"sha256_server"`
	SHA256Readback string            `json:"sha256_readback"`
	Bytes          int64             `json:"bytes"`
	Goodput        float64           `json:"goodput_bytes_per_second"`
	ReadGoodput    float64           `json:"read_goodput_bytes_per_second"`
	WriteSeconds   float64           `json:"write_seconds"`
	ReadSeconds    float64           `json:"read_seconds"`
	AtomicBefore   uint64            `json:"atomic_before"`
	AtomicAfter    uint64            `json:"atomic_after"`
	Seed           uint64            `json:"seed,omitempty"`
	ServerDevice   peer.Side         `json:"server_device"`
	ClientDevice   peer.Side         `json:"client_device"`
	Way            string            `json:"way,omitempty"`
	Server         map[string]uint64 `json:"server"`
	Client         map[string]uint64 `json:"client"`

	writes, reads int
}

// check compares what must be equal.
func (r *Report) check() error {
	switch {
	case r.SHA256Server != r.SHA256Source:
		return fmt.Errorf("the server's memory differs from %s: SHA-256 %s, not %s", r.File, r.SHA256Server, r.SHA256Source)
	case r.SHA256Readback != r.SHA256Source:
		return fmt.Errorf("what was read back differs from %s: SHA-256 %s, not %s", r.File, r.SHA256Readback, r.SHA256Source)
	}
	return nil
}

func (r *Report) text(w io.Writer) error {
	var b strings.Builder
	row := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "%-9s "+format+"\n", append([]any{what}, args...)...)
	}
	device := func(what string, pid int, s peer.Side) {
		row(what, "pid %d, %s at %s, GID %s, MTU %d", pid, s.Device, s.Address, s.GID, s.MTU)
		if s.Note != "" {
			row("", "%s", s.Note)
		}
	}
	device("server", r.ServerPID, r.ServerDevice)
	device("client", r.ClientPID, r.ClientDevice)
	if r.Way != "" {
		row("way", "%s", peer.ChosenWay(r.Way))
	}
	row("source", "%s, %s", r.File, cli.Size(r.Bytes))
	row("WRITE", "%s in %d requests, %s/s", cli.Size(r.Bytes), r.writes, cli.Size(int64(r.Goodput)))
	row("SEND", "message with immediate delivered and answered")
	row("READ", "%s in %d requests, %s/s", cli.Size(r.Bytes), r.reads, cli.Size(int64(r.ReadGoodput)))
	row("ATOMIC", "fetch-and-add on the server's memory: %d, then %d", r.AtomicBefore, r.AtomicAfter)
	row("SHA-256", "source    %s", r.SHA256Source)
	row("", "server    %s", r.SHA256Server)
	row("", "read back %s", r.SHA256Readback)
	if r.Seed != 0 {
		row("seed", "%d (--seed %d hits the same packets again)", r.Seed, r.Seed)
	}
	b.WriteString(counterTable(r.Client, r.Server))
	b.WriteString(r.whyAgain())
	if err := r.check(); err == nil {
		b.WriteString("all equal\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// whyAgain says why packets were sent again although no fault was asked for.
func (r *Report) whyAgain() string {
	total := func(prefix string) (n uint64) {
		for _, side := range []map[string]uint64{r.Client, r.Server} {
			for name, v := range side {
				if strings.HasPrefix(name, prefix) {
					n += v
				}
			}
		}
		return n
	}
	again, lost := total("retransmitted_pkts"), total("drop_rcvbuf")+total("drop_send_")+total("drop_shm")
	switch {
	case again == 0 || total("fault_") > 0:
		return ""
	case lost > 0:
		return fmt.Sprintf("%d packets were sent again, since %d were dropped: a receiver came too late to its buffer, which net.core.rmem_max bounds\n", again, lost)
	}
	return fmt.Sprintf("%d packets were sent again, none was lost: a process did not get a processor in time and answered late\n", again)
}

// counterTable lists the counters of both sides that are not zero.
func counterTable(client, server map[string]uint64) string {
	all := maps.Clone(client)
	for name, n := range server {
		all[name] += n
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-28s %14s %14s\n", "counter", "client", "server")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name] != 0 {
			fmt.Fprintf(&b, "%-28s %14d %14d\n", name, client[name], server[name])
		}
	}
	return b.String()
}
