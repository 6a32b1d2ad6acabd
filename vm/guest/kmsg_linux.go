package guest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// kernelLog writes lines into the kernel's log, which is the one log of the
// guest: what the helper did stands between what the kernel did.
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

// logTail copies the kernel's log to the host.
type logTail struct {
	out io.Writer
	fd  int

	mu   sync.Mutex
	seen *sync.Cond
	last uint64 // number of the last record sent; guarded by mu
	dead bool   // guarded by mu
}

// startLogTail sends the log, from its first record on, to out.
func startLogTail(out io.Writer) *logTail {
	t := &logTail{out: out, fd: -1}
	t.seen = sync.NewCond(&t.mu)
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.dead = true
		return t
	}
	t.fd = fd
	go t.run()
	return t
}

func (t *logTail) run() {
	buf := make([]byte, 8192) // a read returns one whole record
	for {
		n, err := unix.Read(t.fd, buf)
		if err == unix.EINTR || err == unix.EPIPE { // EPIPE: records were overwritten
			continue
		}
		ok := err == nil && n > 0
		var number uint64
		if ok {
			var text []byte
			number, text = formatRecord(buf[:n])
			if !bytes.HasSuffix(text, []byte("] "+flushMark+"\n")) {
				_, err := t.out.Write(text)
				ok = err == nil
			}
		}
		t.mu.Lock()
		t.last, t.dead = max(t.last, number), !ok
		t.seen.Broadcast()
		t.mu.Unlock()
		if !ok {
			return
		}
	}
}

// flush returns when what the log holds now has been sent, or in ten seconds.
func (t *logTail) flush() {
	newest, ok := newestRecord()
	if !ok {
		return
	}
	expired := false
	timer := time.AfterFunc(10*time.Second, func() {
		t.mu.Lock()
		expired = true
		t.seen.Broadcast()
		t.mu.Unlock()
	})
	defer timer.Stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.last < newest && !t.dead && !expired {
		t.seen.Wait()
	}
}

// flushMark is the record that newestRecord writes; it is not sent.
const flushMark = "rdmashim: flush"

// newestRecord returns the number of the log's last record. It writes one to
// find it: the log can be read from its start or its end only.
func newestRecord() (uint64, bool) {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, false
	}
	defer unix.Close(fd)
	if _, err := unix.Seek(fd, 0, io.SeekEnd); err != nil {
		return 0, false
	}
	if _, err := unix.Write(fd, []byte("<7>"+flushMark+"\n")); err != nil {
		return 0, false
	}
	buf := make([]byte, 8192)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return 0, false
	}
	number, _ := formatRecord(buf[:n])
	return number, true
}

// formatRecord turns a record of /dev/kmsg into its number and a line as dmesg
// prints it. Source: Documentation/ABI/testing/dev-kmsg.
func formatRecord(record []byte) (uint64, []byte) {
	head, text, ok := bytes.Cut(record, []byte(";"))
	fields := strings.Split(string(head), ",")
	if !ok || len(fields) < 3 {
		return 0, append(bytes.TrimRight(record, "\n"), '\n')
	}
	number, _ := strconv.ParseUint(fields[1], 10, 64)
	at, _ := strconv.ParseUint(fields[2], 10, 64)
	// Further lines are key=value pairs about the message.
	text, _, _ = bytes.Cut(text, []byte("\n"))
	return number, fmt.Appendf(nil, "[%5d.%06d] %s\n", at/1e6, at%1e6, unescape(text))
}

// unescape undoes \xNN of characters that do not print; a line stays a line.
func unescape(text []byte) []byte {
	var out []byte
	for {
		before, after, ok := bytes.Cut(text, []byte(`\x`))
		out = append(out, before...)
		if !ok {
			return out
		}
		text = after
		if len(after) < 2 {
			return append(append(out, `\x`...), after...)
		}
		c, err := strconv.ParseUint(string(after[:2]), 16, 8)
		switch {
		case err != nil:
			out = append(out, `\x`...)
			continue
		case c == '\n' || c == '\r':
			out = append(out, ' ')
		default:
			out = append(out, byte(c))
		}
		text = after[2:]
	}
}
