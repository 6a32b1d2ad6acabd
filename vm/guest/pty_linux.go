package guest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// runOnTerminal runs a command on a pseudo terminal of its own; its output goes
// out as standard output.
func (g *helper) runOnTerminal(cmd *exec.Cmd, size Winsize, input *commandInput) error {
	master, slave, err := openTerminal()
	if err != nil {
		return fmt.Errorf("open a terminal: %w", err)
	}
	defer master.Close()
	setWinsize(master, size)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = cmd.Start()
	slave.Close()
	if err != nil {
		return err
	}
	printed := make(chan struct{})
	go func() {
		// The read fails with EIO when the last holder of the terminal is gone.
		io.Copy(g.conn.Writer(KindStdout), master)
		close(printed)
	}()
	input.begin(cmd.Process, terminalInput{master}, master, func() { g.conn.Write(KindStdinWant, nil) })
	err = cmd.Wait()
	<-printed
	return err
}

// terminalInput is a terminal's input, whose end is a character: closing it
// would hang up.
type terminalInput struct{ *os.File }

func (t terminalInput) Close() error {
	_, err := t.Write([]byte{4}) // ^D
	return err
}

func openTerminal() (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			master.Close()
		}
	}()
	if err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, err
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		return nil, nil, err
	}
	slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	return master, slave, err
}

func setWinsize(tty *os.File, w Winsize) error {
	return unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: w.Rows, Col: w.Cols})
}
