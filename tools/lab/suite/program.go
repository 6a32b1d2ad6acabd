package suite

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// program is another project's benchmark, run as its manual says: a server and
// a client on a free port of 127.0.0.1. PORT in the arguments is that port;
// SIZE is the message's bytes there and in result.
type program struct {
	name           string // in the suite's rows
	path           string
	env            []string
	server, client string
	result         string // a regular expression; its groups are the figures
}

var (
	// UCX's figures are the median and the overall time of a message in µs.
	ucx = program{
		path: "ucx_perftest", env: []string{"UCX_TLS=tcp", "UCX_WARN_UNUSED_ENV_VARS=n"},
		server: "-p PORT", client: "127.0.0.1 -p PORT -s SIZE", result: `(?m)^Final:\s+\d+\s+(\S+)\s+\S+\s+(\S+)`,
	}
	// libfabric's is the time of a transfer, one way, in µs.
	libfabric = program{
		name: "libfabric udp;ofi_rxd", path: "fi_pingpong",
		server: "-p udp;ofi_rxd -e rdm -S SIZE -I 50 -B PORT", client: "-p udp;ofi_rxd -e rdm -S SIZE -I 50 -P PORT 127.0.0.1",
		result: `(?m)^\d\S*(?:\s+\S+){5}\s+(\S+)\s+\S+$`,
	}
	// iperf3's is bits a second.
	iperf3 = program{
		name: "iperf3 (TCP)", path: "iperf3", server: "-s -1 -B 127.0.0.1 -p PORT", client: "-c 127.0.0.1 -p PORT -n 512M -J",
		result: `(?s)"sum_received".*?"bits_per_second":\s*([^,\s]+)`,
	}
	// perftest's fifth column is millions of messages a second of bandwidth,
	// and the median in µs of latency.
	perftest = program{
		server: "-d rxe0 -x GID -F -s SIZE -p PORT", client: "-d rxe0 -x GID -F -s SIZE -p PORT 127.0.0.1",
		result: `(?m)^[ \t]*SIZE[ \t]+\d+(?:[ \t]+[\d.]+){2}[ \t]+([\d.]+)\s`,
	}
	// libibverbs' own prints the time of a round trip in µs.
	pingpong = program{
		server: "-d rxe0 -g GID -s SIZE -p PORT", client: "-d rxe0 -g GID -s SIZE -p PORT 127.0.0.1", result: `= ([\d.]+) usec/iter`,
	}
)

// with adds arguments to the client's.
func (p program) with(arguments string) program {
	p.client += " " + arguments
	return p
}

// series is a series of a figure made of the program's.
func (p program) series(size int, value func(figures []float64) float64) *series {
	path, err := exec.LookPath(p.path)
	if err != nil {
		return &series{name: p.name, absent: cmp.Or(cli.NotInstalled(filepath.Base(p.path)), err).Error()}
	}
	return &series{name: p.name, measure: func(ctx context.Context) (float64, error) {
		figures, err := p.run(ctx, path, size)
		if err != nil {
			return 0, &notHere{fmt.Sprintf("%s does not run here: %s", filepath.Base(path), cli.OneLine(err))}
		}
		return value(figures), nil
	}}
}

// read finds the figures in what the client printed.
func (p program) read(out []byte, size int) (figures []float64, err error) {
	found := regexp.MustCompile(strings.ReplaceAll(p.result, "SIZE", strconv.Itoa(size))).FindSubmatch(out)
	for _, text := range found[min(1, len(found)):] {
		v, err := strconv.ParseFloat(string(text), 64)
		if err != nil || v <= 0 {
			return nil, fmt.Errorf("it printed no result that is understood, but %q", text)
		}
		figures = append(figures, v)
	}
	if len(figures) == 0 {
		return nil, errors.New("it printed no result that is understood")
	}
	return figures, nil
}

// programLimit bounds a run of another program.
const programLimit = time.Minute

// run runs the server and the client, and again when the server has ended
// without a figure: on a busy machine a client of perftest may give up.
func (p program) run(ctx context.Context, path string, size int) (figures []float64, err error) {
	for range 3 {
		if figures, err = p.once(ctx, path, size); !errors.As(err, new(serverEnded)) {
			break
		}
	}
	return figures, err
}

// serverEnded is the error of a pair whose server has ended.
type serverEnded struct{ error }

// once runs the server and the client. A client that came before the server
// listened is run again; with some programs only their output tells.
func (p program) once(ctx context.Context, path string, size int) ([]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, programLimit)
	defer cancel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	ln.Close()
	command := func(arguments string, said *bytes.Buffer) *exec.Cmd {
		words := strings.Fields(strings.NewReplacer("PORT", port, "SIZE", strconv.Itoa(size)).Replace(arguments))
		cmd := exec.CommandContext(ctx, path, words...)
		cmd.Env, cmd.Stderr = append(os.Environ(), p.env...), said
		return cmd
	}
	var said bytes.Buffer
	server := command(p.server, &said)
	if err := server.Start(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() { _ = server.Wait(); close(ended) }()
	defer func() { _ = server.Process.Kill(); <-ended }()
	retry := time.NewTicker(50 * time.Millisecond)
	defer retry.Stop()
	for try := 0; ; try++ {
		var stderr bytes.Buffer
		out, err := command(p.client, &stderr).Output()
		if err == nil {
			var figures []float64
			if figures, err = p.read(out, size); err == nil {
				return figures, nil
			}
		}
		select {
		case <-ended:
			return nil, serverEnded{errors.New(firstLine(said.String(), "its server ended; the client said: "+firstLine(stderr.String(), fmt.Sprint(err))))}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-retry.C:
		}
		if try == 40 {
			return nil, errors.New(firstLine(stderr.String(), err.Error()))
		}
	}
}

func firstLine(text, otherwise string) string {
	if line, _, _ := strings.Cut(strings.TrimSpace(text), "\n"); line != "" {
		return line
	}
	return otherwise
}
