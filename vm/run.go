package vm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/rdmashim/rdmashim/vm/guest"
)

// Result is the result of a run.
type Result struct {
	Kernel string        // package and version, or file
	Image  Image         // the booted image
	Accel  string        // tcg or kvm
	Boot   time.Duration // until all guests had rxe0 up
	Total  time.Duration // until all were off
	Nodes  []NodeResult
}

// NodeResult is the result of one guest.
type NodeResult struct {
	Link   string   // the rxe link
	Steps  []string // the steps of its setup
	Status int      // of the command, as a shell would report it; -1: none ended
	Stalls []string // lines of the kernel's log about time that emulation lost
	Log    string   // file that holds the log, empty when it was not kept
}

// Run boots guests, runs the configuration's command on each, brings files
// back and powers them off. The Result is there also with an error, as far as
// the run came. Errors: *ExitError, *CommandError, *KernelError, *TimeoutError,
// *DiedError, *MissingError; with two nodes, several joined.
func Run(ctx context.Context, c Config) (*Result, error) {
	if len(c.Command.Args) == 0 {
		return nil, errors.New("no command to run")
	}
	s, err := Start(ctx, c)
	if err != nil {
		return &s.result, err
	}
	err = s.runAll(ctx, c.Command)
	perr := s.PullAll(ctx)
	result, cerr := s.Close()
	return result, joinFlat(err, perr, cerr)
}

// Session is guests that run.
type Session struct {
	Nodes []*Machine

	config  Config
	started time.Time
	cancel  context.CancelFunc
	budget  *budget // of the guests, once they have booted; nil: none
	result  Result
	pushed  map[Add]bool // test data that the first guest has

	mu sync.Mutex
	// Guarded by mu.
	failed bool // something went wrong: guests are ended, not powered off
	wanted bool // logs are kept: the failure is not the caller's giving up
}

// Start boots guests and brings rxe0 up in each. Close must be called; ctx ends
// the guests as well. With an error the Session holds no guests, but what is
// known of them.
func Start(ctx context.Context, c Config) (*Session, error) {
	s := &Session{started: time.Now(), pushed: map[Add]bool{}}
	var err error
	if s.config, err = c.withDefaults(); err != nil {
		return s, err
	}
	qemu, err := findQEMU(c.QEMU)
	if err != nil {
		return s, err
	}
	kernel, err := FindKernel(ctx, c.Kernel, c.Modules, c.Release, s.config.Log, s.config.Load...)
	if err != nil {
		return s, err
	}
	s.result.Kernel = kernel.Name
	image, err := s.findImage(ctx, kernel)
	if err != nil {
		return s, err
	}
	s.result.Image = *image
	adds, size, err := expandAdds(s.config.Add)
	if err != nil {
		return s, err
	}
	if c.Out != "" { // better now than when the command has run
		if err := os.MkdirAll(c.Out, 0o755); err != nil {
			return s, fmt.Errorf("directory for the guests' files: %w", err)
		}
	}
	if s.config.Memory == 0 {
		s.config.Memory = 256 + int(size>>20)*2
	}
	h := hardware{kernel: kernel.Image, image: image.File, memory: s.config.Memory, cpus: s.config.CPUs}
	if h.accel, err = chooseAccel(ctx, s.config.Accel, qemu, h, s.config.Log); err != nil {
		return s, err
	}
	s.result.Accel = h.accel
	s.config.Log("vm: booting %s with %s, image %.1f MB", kernel.Name, h.accel, float64(image.Size)/1e6)
	if err := s.boot(ctx, qemu, h, adds); err != nil {
		s.fail(err)
		_, cerr := s.Close()
		return s, joinFlat(err, cerr)
	}
	if s.config.Timeout > 0 {
		s.budget = startBudget(s.config.Timeout, s.pids)
	}
	return s, nil
}

func (s *Session) findImage(ctx context.Context, kernel *Kernel) (*Image, error) {
	c := &s.config
	if c.Image == "" {
		return CachedImage(ctx, ImageConfig{Kernel: kernel, Source: c.Source, Log: c.Log})
	}
	data, err := os.ReadFile(c.Image)
	if err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	release, err := imageRelease(data)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", c.Image, err)
	}
	if release != kernel.Release {
		return nil, fmt.Errorf("image %s is for kernel %s, and this is %s: build it anew", c.Image, release, kernel.Release)
	}
	return &Image{File: c.Image, Size: int64(len(data)), SHA256: sum(data)}, nil
}

// boot starts all guests and waits until each is set up and has its files.
func (s *Session) boot(ctx context.Context, qemu string, h hardware, adds []Add) error {
	guestCtx, cancel := context.WithCancel(ctx)
	s.cancel = cancel
	ends := make([]*os.File, s.config.Nodes)
	if s.config.Nodes == 2 {
		var err error
		if ends[0], ends[1], err = filePair(); err != nil {
			return err
		}
		defer ends[0].Close()
		defer ends[1].Close()
	}
	for i := range s.config.Nodes {
		h.node = i
		log, err := s.openLog(i)
		if err != nil {
			return err
		}
		p, err := startQEMU(guestCtx, qemu, h, ends[i])
		if err != nil {
			log.file.Close()
			return err
		}
		s.Nodes = append(s.Nodes, newMachine(i, h.memory, p, log))
		s.result.Nodes = append(s.result.Nodes, NodeResult{Status: -1})
	}
	booting := startBudget(s.config.BootTimeout, s.pids)
	defer booting.stop()
	bootCtx, stop := booting.bound(ctx)
	defer stop()
	err := s.each(bootCtx, func(ctx context.Context, m *Machine) error {
		if err := m.boot(ctx, s.setup(m.Node)); err != nil {
			return err
		}
		s.config.Log("node %d: %s", m.Node, lastOf(m.Steps))
		if len(adds) == 0 {
			return nil
		}
		return m.Push(ctx, adds...)
	})
	s.result.Boot = time.Since(s.started)
	return err
}

func lastOf(lines []string) string {
	if len(lines) == 0 {
		return "up"
	}
	return lines[len(lines)-1]
}

func (s *Session) setup(node int) guest.Setup {
	g := guest.Setup{
		Node: node, Hostname: fmt.Sprintf("node%d", node), Env: s.config.nodeEnv(node),
		Load: s.config.Load, Netdev: linkNetdev, Address: nodeAddress(node) + "/24", Link: LinkName,
	}
	if s.config.NoLink {
		g.Link = ""
	}
	return g
}

// openLog makes the file that holds a guest's log.
func (s *Session) openLog(node int) (*guestLog, error) {
	var file *os.File
	var err error
	switch name := s.config.LogFile; {
	case name == "":
		file, err = os.CreateTemp("", fmt.Sprintf("rdmashim-vm-node%d-*.log", node))
	case s.config.Nodes > 1:
		file, err = os.Create(fmt.Sprintf("%s.node%d", name, node))
	default:
		file, err = os.Create(name)
	}
	if err != nil {
		return nil, fmt.Errorf("log of node %d: %w", node, err)
	}
	return &guestLog{file: file, judge: &logJudge{out: file}}, nil
}

// each does something with all guests at once. When a guest is gone or out of
// time, the others, which may wait for it, are given up.
func (s *Session) each(ctx context.Context, do func(context.Context, *Machine) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	errs := make([]error, len(s.Nodes))
	var wg sync.WaitGroup
	for i, m := range s.Nodes {
		wg.Go(func() {
			errs[i] = do(ctx, m)
			var exit *ExitError
			var command *CommandError
			if errs[i] != nil && !errors.As(errs[i], &exit) && !errors.As(errs[i], &command) {
				cancel(errGivenUp)
			}
		})
	}
	wg.Wait()
	return joinFlat(slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, errGivenUp) })...)
}

var errGivenUp = errors.New("given up because of another node")

// pids are the processes of the guests.
func (s *Session) pids() []int {
	var pids []int
	for _, m := range s.Nodes {
		pids = append(pids, m.process.cmd.Process.Pid)
	}
	return pids
}

// runAll runs a command on all nodes, with prefixed output when there are two.
func (s *Session) runAll(ctx context.Context, c Command) error {
	ctx, cancel := s.budget.bound(ctx)
	defer cancel()
	var mu sync.Mutex
	return s.each(ctx, func(ctx context.Context, m *Machine) error {
		mine := c
		if len(s.Nodes) > 1 {
			prefix := fmt.Sprintf("node%d: ", m.Node)
			stdout, stderr := prefixed(&mu, c.Stdout, prefix), prefixed(&mu, c.Stderr, prefix)
			defer stdout.flush()
			defer stderr.flush()
			mine.Stdout, mine.Stderr = stdout, stderr
			if m.Node != 0 {
				mine.Stdin = nil // there is one input, and it is node 0's
			}
		}
		return s.exec(ctx, m, mine)
	})
}

// prefixed returns a writer that puts a prefix before each line, so that the
// outputs of several nodes, which share mu, can be told apart.
func prefixed(mu *sync.Mutex, w io.Writer, prefix string) *lineWriter {
	return &lineWriter{each: func(line string) {
		mu.Lock()
		defer mu.Unlock()
		writeTo(w, []byte(prefix+line+"\n"))
	}}
}

func (s *Session) exec(ctx context.Context, m *Machine, c Command) error {
	err := m.Exec(ctx, c)
	var exit *ExitError
	switch {
	case err == nil:
		s.result.Nodes[m.Node].Status = 0
	case errors.As(err, &exit):
		s.result.Nodes[m.Node].Status = exit.Status()
	default:
		s.fail(err)
	}
	return err
}

// fail notes a failure. A command that cannot be run leaves a good guest.
func (s *Session) fail(err error) {
	var command *CommandError
	if errors.As(err, &command) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = true
	s.wanted = s.wanted || !(errors.Is(err, context.Canceled) || errors.Is(err, errGivenUp))
}

// Exec runs a command on one node, within the session's time limit.
func (s *Session) Exec(ctx context.Context, node int, c Command) error {
	if node < 0 || node >= len(s.Nodes) {
		return fmt.Errorf("there is no node %d, only %d of them", node, len(s.Nodes))
	}
	ctx, cancel := s.budget.bound(ctx)
	defer cancel()
	return s.exec(ctx, s.Nodes[node], c)
}

// PullAll brings the nodes' files back into Config.Out, if that is set, unless
// a guest is beyond that.
func (s *Session) PullAll(ctx context.Context) error {
	if s.config.Out == "" || s.failed {
		return nil
	}
	ctx, cancel := s.budget.bound(ctx)
	defer cancel()
	err := s.each(ctx, func(ctx context.Context, m *Machine) error {
		to := s.config.Out
		if len(s.Nodes) > 1 {
			to = filepath.Join(to, fmt.Sprintf("node%d", m.Node))
		}
		return m.Pull(ctx, guest.OutDir, to)
	})
	if err != nil {
		s.fail(err)
	}
	return err
}

// powerOffLimit is how long a guest may take to power off before it is ended.
const powerOffLimit = 30 * time.Second

// Close powers the guests off and judges their logs: a *KernelError for each
// kernel that complained. A guest that is out of time is just ended.
func (s *Session) Close() (*Result, error) {
	if s.cancel == nil {
		return &s.result, nil
	}
	var wg sync.WaitGroup
	for _, m := range s.Nodes {
		wg.Go(func() {
			if s.failed {
				m.kill()
			} else {
				m.powerOff(powerOffLimit)
			}
		})
	}
	wg.Wait()
	s.cancel()
	s.cancel = nil
	if s.budget != nil {
		s.budget.stop()
	}
	var errs []error
	for i, m := range s.Nodes {
		n := &s.result.Nodes[i]
		n.Link, n.Steps = m.Link, m.Steps
		var complaints []string
		complaints, n.Stalls = m.log.judge.verdict()
		name := m.log.file.Name()
		m.log.file.Close()
		if len(complaints) > 0 {
			errs = append(errs, &KernelError{Node: i, Lines: complaints, Log: name})
		}
		if s.config.LogFile == "" && !s.wanted && len(complaints) == 0 {
			os.Remove(name)
			continue
		}
		n.Log = name
	}
	s.result.Total = time.Since(s.started)
	return &s.result, joinFlat(errs...)
}

// joinFlat is errors.Join that leaves a single error as it is.
func joinFlat(errs ...error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}
