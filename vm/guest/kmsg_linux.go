package guest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// kernelLog writes lines into the kernel's log, which is the one log of the
// guest: the helper's steps stand between the kernel's.
type kernelLog struct{ f *os.File }

func openKernelLog() kernelLog {
	f, err := os.OpenFile("/dev/kmsg", os.O_WRONLY, 0)
	if err != nil {
		f = os.Stderr
	}
	return kernelLog{f}
}

func (l kernelLog) printf(format string, args ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ")
	fmt.Fprintf(l.f, "<6>rdmashim: %.900s\n", text)
}

// logTail copies the kernel's log to the host, from its first record on.
type logTail struct {
	out io.Writer
	mu  sync.Mutex
	fd  int // read by one at a time; guarded by mu
}

func startLogTail(out io.Writer) *logTail {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		fd = -1
	}
	t := &logTail{out: out, fd: fd}
	go func() {
		for t.drain() {
			unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		}
	}()
	return t
}

// drain sends the records that the log holds now, and says whether more can
// come.
func (t *logTail) drain() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	buf := make([]byte, 8192) // a read returns one whole record
	for {
		n, err := unix.Read(t.fd, buf)
		switch err {
		case nil:
		case unix.EINTR, unix.EPIPE: // EPIPE: records were overwritten
			continue
		default:
			return err == unix.EAGAIN
		}
		if _, err := t.out.Write(formatRecord(buf[:n])); err != nil {
			return false
		}
	}
}

// formatRecord turns a record of /dev/kmsg into a line as dmesg prints it.
// Source: Documentation/ABI/testing/dev-kmsg.
func formatRecord(record []byte) []byte {
	head, text, ok := bytes.Cut(record, []byte(";"))
	fields := strings.Split(string(head), ",")
	if !ok || len(fields) < 3 {
		return append(bytes.TrimRight(record, "\n"), '\n')
	}
	at, _ := strconv.ParseUint(fields[2], 10, 64)
	// Further lines are key=value pairs about the message.
	text, _, _ = bytes.Cut(text, []byte("\n"))
	return fmt.Appendf(nil, "[%5d.%06d] %s\n", at/1e6, at%1e6, unescape(text))
}

var escape = regexp.MustCompile(`\\x[0-9a-f]{2}`)

// unescape undoes \xNN of characters that do not print; a line stays a line.
func unescape(text []byte) []byte {
	return escape.ReplaceAllFunc(text, func(e []byte) []byte {
		c, _ := strconv.ParseUint(string(e[2:]), 16, 8)
		if c == '\n' || c == '\r' {
			c = ' '
		}
		return []byte{byte(c)}
	})
}
