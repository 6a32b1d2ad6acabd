package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// External references are other people's programs, run as their manuals say: a
// server and a client on a free port of 127.0.0.1.

// external is a series of such a program.
func (s *suite) external(name, program string, env []string, server, client func(port string) []string, read func([]byte) (float64, error)) *series {
	path, err := exec.LookPath(program)
	if err != nil {
		return &series{name: name, absent: program + " is not installed", measure: nil}
	}
	return &series{name: name, measure: func(ctx context.Context) (float64, error) {
		v, err := pairOf(ctx, path, env, server, client, read)
		if err != nil {
			return 0, &notHere{fmt.Sprintf("%s does not run here: %s", program, oneLine(err))}
		}
		return v, nil
	}}
}

// externalLimit bounds a run of another program.
const externalLimit = time.Minute

// pairOf runs a program's server and client, and reads what the client printed. A
// client that came before the server listened is run again; with some programs
// only what they print tells.
func pairOf(ctx context.Context, path string, env []string, server, client func(port string) []string, read func([]byte) (float64, error)) (v float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, externalLimit)
	defer cancel()
	port, err := freePort()
	if err != nil {
		return 0, err
	}
	var said bytes.Buffer
	srv := exec.CommandContext(ctx, path, server(port)...)
	srv.Env = append(os.Environ(), env...)
	srv.Stderr = &said
	if err := srv.Start(); err != nil {
		return 0, err
	}
	ended := make(chan struct{})
	go func() { _ = srv.Wait(); close(ended) }()
	defer func() { _ = srv.Process.Kill(); <-ended }()
	retry := time.NewTicker(50 * time.Millisecond)
	defer retry.Stop()
	for try := 0; ; try++ {
		cmd := exec.CommandContext(ctx, path, client(port)...)
		cmd.Env = srv.Env
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err == nil {
			v, err = read(out)
		}
		if err == nil {
			return v, nil
		}
		select {
		case <-ended:
			return 0, errors.New(firstLine(said.String(), "its server ended"))
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-retry.C:
		}
		if try == 40 {
			return 0, errors.New(firstLine(stderr.String(), err.Error()))
		}
	}
}

func firstLine(text, otherwise string) string {
	if line, _, _ := strings.Cut(strings.TrimSpace(text), "\n"); line != "" {
		return line
	}
	return otherwise
}

// freePort is a TCP port that was free a moment ago.
func freePort() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer ln.Close()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	return port, err
}

// ucx is a test of ucx_perftest over TCP; pick takes its result out of the time
// of a message: the median, and the overall one, in µs.
func (s *suite) ucx(test string, size, n int, pick func(median, overall float64) float64) *series {
	return s.external("UCX "+strings.TrimPrefix(test, "ucp_")+" over tcp", "ucx_perftest", []string{"UCX_TLS=tcp", "UCX_WARN_UNUSED_ENV_VARS=n"},
		func(port string) []string { return []string{"-p", port} },
		func(port string) []string {
			return []string{"127.0.0.1", "-p", port, "-t", test, "-s", strconv.Itoa(size), "-n", strconv.Itoa(n), "-w", strconv.Itoa(max(n/10, 10))}
		},
		func(out []byte) (float64, error) {
			median, overall, err := readUCX(string(out))
			if err != nil {
				return 0, err
			}
			return pick(median, overall), nil
		})
}

func (s *suite) ucxBandwidth(size, n int) *series {
	return s.ucx("ucp_put_bw", size, n, func(_, overall float64) float64 { return float64(size) / overall * 1e6 / gigabyte })
}

func (s *suite) ucxRate(size, n int) *series {
	return s.ucx("ucp_put_bw", size, n, func(_, overall float64) float64 { return 1 / overall })
}

func (s *suite) ucxLatency(size, n int) *series {
	return s.ucx("ucp_put_lat", size, n, func(median, _ float64) float64 { return median })
}

// readUCX finds "Final: iterations median average overall …", times in µs.
func readUCX(out string) (median, overall float64, err error) {
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) < 5 || f[0] != "Final:" {
			continue
		}
		median, err = strconv.ParseFloat(f[2], 64)
		if err == nil {
			overall, err = strconv.ParseFloat(f[4], 64)
		}
		if err == nil && overall > 0 {
			return median, overall, nil
		}
	}
	return 0, 0, errors.New("ucx_perftest printed no result that is understood")
}

// libfabric is fi_pingpong over the provider that makes UDP reliable.
func (s *suite) libfabric(size int) *series {
	args := []string{"-p", "udp;ofi_rxd", "-e", "rdm", "-S", strconv.Itoa(size), "-I", "50"}
	return s.external("libfabric udp;ofi_rxd", "fi_pingpong", nil,
		func(port string) []string { return append(args[:len(args):len(args)], "-B", port) },
		func(port string) []string { return append(args[:len(args):len(args)], "-P", port, "127.0.0.1") },
		func(out []byte) (float64, error) { return readPingPong(string(out), size) })
}

// readPingPong finds "bytes #sent #ack total time MB/sec usec/xfer Mxfers/sec".
// A transfer is one way, and MB are millions.
func readPingPong(out string, size int) (float64, error) {
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) < 7 || f[0] == "bytes" {
			continue
		}
		us, err := strconv.ParseFloat(f[6], 64)
		if err == nil && us > 0 {
			return float64(size) / us * 1e6 / gigabyte, nil
		}
	}
	return 0, errors.New("fi_pingpong printed no result that is understood")
}

func (s *suite) iperf3() *series {
	return s.external("iperf3 (TCP)", "iperf3", nil,
		func(port string) []string { return []string{"-s", "-1", "-B", "127.0.0.1", "-p", port} },
		func(port string) []string { return []string{"-c", "127.0.0.1", "-p", port, "-n", "512M", "-J"} },
		func(out []byte) (float64, error) { return readIperf3(out) })
}

func readIperf3(out []byte) (float64, error) {
	var r struct {
		End struct {
			Sum struct {
				Bits float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	if err := json.Unmarshal(out, &r); err != nil || r.End.Sum.Bits <= 0 {
		return 0, errors.New("iperf3 printed no result that is understood")
	}
	return r.End.Sum.Bits / 8 / gigabyte, nil
}
