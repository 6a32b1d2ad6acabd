package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/rdmashim/perf"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/vm"
	"github.com/rdmashim/rdmashim/vm/cprograms"
)

// Rows about the kernel's rxe are measured in one guest, by the same suite with
// another table:
//
//	here       runGuest boots a guest with perftest and this program in it, and
//	           runs there 'suite --guest --json'
//	in there   guestTable; setUpVeth makes the wire of a row, and
//	           ServeNVMet the kernel's target of the last ones
//
// The guest is emulated in software: only its ratios mean anything.

// perftestPrograms are the programs of perftest that the guest gets.
var perftestPrograms = []string{"ib_write_bw", "ib_write_lat"}

// Numbers of messages in the guest, which is slow.
const (
	guestLarge = 500
	guestSmall = 10000
	guestTurns = 2000
)

// guestTable lists the comparisons in a guest.
func (s *suite) guestTable() (table []comparison) {
	large := fmt.Sprintf("-s 65536 -t 16 -n %d", guestLarge)
	small := fmt.Sprintf("-s 64 -n %d", guestSmall)
	turns := fmt.Sprintf("-s 64 -n %d", guestTurns)
	bandwidth := s.perftest("ib_write_bw", fmt.Sprintf("-t 16 -n %d", guestLarge), 65536, 65536)
	rate := s.perftest("ib_write_bw", fmt.Sprintf("-n %d", guestSmall), 64, 1)
	latency := s.perftest("ib_write_lat", fmt.Sprintf("-n %d", guestTurns), 64, 1)
	for _, bell := range []string{"syscall", "raw"} {
		on := func(words string, value func(perf.Result) float64) *series {
			device := "rxe0?doorbell=" + bell
			return s.between("ours on "+device, device, device, words, value)
		}
		title := func(work string) string { return fmt.Sprintf("%s on kernel rxe, doorbell=%s", work, bell) }
		table = append(table,
			comparison{title("WRITE 64 KiB goodput"), "MB/s", on("write bw "+large, megabytes), bandwidth, 0.95, false},
			comparison{title("WRITE 64 B rate"), "M/s", on("write bw "+small, msgRate), rate, 0.9, false},
			comparison{title("WRITE 64 B ping-pong, polling,"), "µs", on("write lat "+turns, typical), latency, 1.1, true},
		)
	}
	wire := fmt.Sprintf("write bw %s -e", large)
	soft := s.between("the soft RNIC", vethSoft(1), vethSoft(0), wire, megabytes)
	rxe := s.between("kernel rxe, same veth", vethLinks[1], vethLinks[0], wire, megabytes)
	table = append(table, comparison{"WRITE 64 KiB goodput of the soft RNIC over a veth", "MB/s", soft, rxe, 2, false})
	return append(table, s.nvmetTable()...)
}

// The wire between two rxe links, and two soft RNICs, of one guest.
var (
	vethNames = [2]string{"pv0", "pv1"}
	vethLinks = [2]string{"rxv0", "rxv1"}
	vethAddrs = [2]string{"10.78.0.1", "10.78.0.2"}
)

// vethMTU leaves room for a path MTU of 4096.
const vethMTU = 4500

// vethSoft is a soft RNIC on the wire. The kernel's rxe has its port.
func vethSoft(i int) string { return "soft:" + vethAddrs[i] + "?port=14791" }

// errRepeated is why there is no figure of rxe whose peer took long, on a
// machine that is busy: it repeats messages of several packets wrongly.
var errRepeated = &notHere{"rxe repeated a message wrongly (docs/design/differences.md): measure on a machine that is idle"}

// between is a series of 'rdmashim perf' between two devices.
func (s *suite) between(name, server, client, words string, value func(perf.Result) float64) *series {
	return pick(name, func(ctx context.Context) (perf.Result, error) {
		r, err := s.perf(ctx, server, client, words)
		var failed *uapi.WCError
		if errors.As(err, &failed) && failed.WC.Status == uapi.WCRemInvReqErr && !strings.HasPrefix(client, "soft") {
			err = errRepeated
		}
		return r, err
	}, value)
}

// perftest is a series of such a program on rxe0: its figure, times by.
func (s *suite) perftest(name, words string, size int, by float64) *series {
	if s.noPrograms != "" || !s.guest {
		return &series{name: "perftest " + name, absent: s.noPrograms}
	}
	p := perftest
	p.name, p.path = "perftest "+name, filepath.Join(cprograms.Dir, name)
	p.env = []string{"LD_LIBRARY_PATH=" + filepath.Join(cprograms.Dir, "lib")}
	for _, side := range []*string{&p.server, &p.client} {
		*side = strings.Replace(*side, "GID", strconv.Itoa(s.gid), 1) + " " + words
	}
	return p.series(size, func(f []float64) float64 { return f[0] * by })
}

// runGuest measures the rows of a guest, or says why not.
func (s *suite) runGuest(ctx context.Context, table []comparison) ([]Row, error) {
	var rows []Row
	for _, c := range table {
		rows = append(rows, c.row())
	}
	absent := func(why string) []Row {
		for i := range rows {
			rows[i].Reason = why
		}
		return rows
	}
	switch {
	case len(rows) == 0:
		return nil, nil
	case !s.vm:
		return absent("no guest was asked for (--vm)"), nil
	}
	measured, err := s.guestRows(ctx)
	var missing *vm.MissingError
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &missing):
		return absent("no guest can be booted here: " + missing.Error()), nil
	case err != nil:
		return absent("failed: " + cli.OneLine(err)), fmt.Errorf("in the guest: %s", cli.OneLine(err))
	}
	for i := range rows {
		if at := slices.IndexFunc(measured, func(r Row) bool { return r.Work == rows[i].Work }); at >= 0 {
			bound := rows[i].atMost
			rows[i] = measured[at]
			rows[i].atMost = bound
		}
	}
	return rows, nil
}

// guestMemory is in MiB; the guest's files and disks are in it.
const guestMemory = 832

// nvmetName is the kernel's target there.
const nvmetName = "nqn.2026-11.rdmashim:nvmet"

// guestSelf is this program in the guest.
const guestSelf = "/bbin/bench"

// buildForGuest builds this program as a static one, with the flags of the
// guest's image, which has built most parts.
func buildForGuest(ctx context.Context, file string) error {
	source, err := sourceOf("tools/lab")
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", file, ".")
	cmd.Dir, cmd.Env = source, append(os.Environ(), "CGO_ENABLED=0", "GOARCH=amd64")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s for the guest: %w: %s", source, err, out)
	}
	return nil
}

func (s *suite) guestRows(ctx context.Context) ([]Row, error) {
	dir, err := os.MkdirTemp("", "rdmashim-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	self := filepath.Join(dir, "bench")
	if err := buildForGuest(ctx, self); err != nil {
		return nil, err
	}
	args := []string{guestSelf, "suite", "--guest", "--json", "--rounds", strconv.Itoa(s.rounds), "--run", s.run}
	c := vm.Config{Memory: guestMemory, Load: []string{"nvmet_rdma", "brd"}, Timeout: 3*time.Minute + time.Duration(s.rounds)*time.Minute}
	adds, err := cprograms.Adds(ctx, perftestPrograms...)
	if err != nil {
		args = append(args, "--no-programs", "no perftest: "+cli.OneLine(err))
	}
	c.Add = append(adds, vm.Add{Host: self, Guest: guestSelf})
	var stdout, stderr bytes.Buffer
	c.Command = vm.Command{Args: args, Stdout: &stdout, Stderr: &stderr}
	_, err = vm.Run(ctx, c)
	var exit *vm.ExitError
	if errors.As(err, &exit) && exit.Status() == 3 {
		err = nil // targets that are not met
	}
	if errors.As(err, &exit) && stderr.Len() > 0 {
		err = errors.New(strings.TrimSpace(stderr.String()))
	}
	if err != nil {
		return nil, err
	}
	var rows []Row
	if err := json.Unmarshal(stdout.Bytes(), &rows); err != nil {
		return nil, fmt.Errorf("the guest's rows are not understood: %w", err)
	}
	return rows, nil
}

// prepareGuest is done in the guest before its table is made.
func (s *suite) prepareGuest(ctx context.Context) (err error) {
	if s.noPrograms == "" {
		for _, p := range perftestPrograms {
			if err := os.Chmod(filepath.Join(cprograms.Dir, p), 0o755); err != nil {
				return err
			}
		}
	}
	if s.gid, err = setUpVeth(ctx); err != nil {
		return err
	}
	d, err := uapi.Open("rxe0", uapi.OpenConfig{})
	if err != nil {
		return err
	}
	info, err := d.QueryDevice()
	if err = errors.Join(err, d.Close()); err != nil {
		return err
	}
	at := info.Address.Addr().String()
	s.nvmet = net.JoinHostPort(at, "4420")
	return ServeNVMet(nvmetName, at, "/dev/ram0")
}
