package trace

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/privatefile"
)

// The environment variables that switch tracing on.
const (
	EnvTrace = "RDMASHIM_TRACE"      // 1: to standard error; else the file to append to; empty, 0: off
	EnvTime  = "RDMASHIM_TRACE_TIME" // 1: with times
	EnvPin   = "RDMASHIM_TRACE_PIN"  // 1: with Pin
)

// Env wraps k as the environment asks. Each line begins with the process's
// number and name: sim0, and sim0#2 for the next kernel of that name; a target
// after otlp: has spans (WithSpans). Without RDMASHIM_TRACE it returns k
// itself. The caller calls done when it uses k no more: done lets go of the
// file. A file that cannot be opened (privatefile.Open) is an error. The first
// failure to write it is reported on standard error, and the trace ends there.
func Env(k kshim.Kernel, name string, opts ...Option) (traced kshim.Kernel, done func(), err error) {
	target := os.Getenv(EnvTrace)
	if target == "" || target == "0" {
		return k, func() {}, nil
	}
	file, spans := strings.CutPrefix(target, "otlp:")
	w, done, err := files.open(file)
	if err != nil {
		return nil, nil, fmt.Errorf("%s=%s: %w", EnvTrace, target, err)
	}
	opts = append(opts, WithName(strconv.Itoa(os.Getpid())+" "+files.name(name)))
	if spans {
		opts = append(opts, WithSpans())
	}
	if os.Getenv(EnvTime) == "1" {
		opts = append(opts, WithTime())
	}
	if os.Getenv(EnvPin) == "1" {
		opts = append(opts, WithPin())
	}
	return New(k, w, opts...), done, nil
}

// traceFiles are the files of this process that are traced to. Kernels share
// one, so that it is open once.
type traceFiles struct {
	mu     sync.Mutex
	byName map[string]*traceFile // guarded by mu
	uses   map[string]int        // guarded by mu: of a kernel's name
}

// traceFile is a file that is traced to, by several kernels.
type traceFile struct {
	*os.File
	users  int         // guarded by traceFiles.mu
	failed atomic.Bool // and said so
}

// Write implements io.Writer. After a failure it writes nothing more: a trace
// with holes would mislead.
func (f *traceFile) Write(b []byte) (int, error) {
	if f.failed.Load() {
		return len(b), nil
	}
	n, err := f.File.Write(b)
	f.warnOnce(err)
	return n, err
}

// warnOnce prints the file's first error on standard error.
func (f *traceFile) warnOnce(err error) {
	if err != nil && !f.failed.Swap(true) {
		fmt.Fprintf(os.Stderr, "rdmashim: %s: %v; the trace ends here\n", EnvTrace, err)
	}
}

var files = traceFiles{byName: map[string]*traceFile{}, uses: map[string]int{}}

// name tells kernels of one name apart.
func (t *traceFiles) name(name string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.uses[name]++; t.uses[name] > 1 {
		return name + "#" + strconv.Itoa(t.uses[name])
	}
	return name
}

// open gives the file to write to. A file is appended to, so that several
// processes may trace to one: each line is one write.
func (t *traceFiles) open(target string) (io.Writer, func(), error) {
	if target == "1" {
		return os.Stderr, func() {}, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.byName[target]
	if f == nil {
		file, err := privatefile.Open(target, os.O_WRONLY|os.O_APPEND|os.O_CREATE)
		if err != nil {
			return nil, nil, err
		}
		f = &traceFile{File: file}
		t.byName[target] = f
	}
	f.users++
	var once sync.Once
	return f, func() { once.Do(func() { t.release(target, f) }) }, nil
}

func (t *traceFiles) release(target string, f *traceFile) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.users--; f.users == 0 {
		delete(t.byName, target)
		f.warnOnce(f.Close()) // some file systems tell only now that they had no room
	}
}
