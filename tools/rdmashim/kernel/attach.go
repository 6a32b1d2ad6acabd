package kernel

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// lines gives the commands of a user: io.EOF after the last.
type lines interface{ ReadLine() (string, error) }

// answers carries out lines from conn and writes to it, for each, what the
// command printed, a zero byte, the text of its error or nothing, and another.
func answers(c *console, conn io.ReadWriter) {
	commands := bufio.NewScanner(conn)
	for commands.Scan() {
		err := c.run(commands.Text())
		if err == errExit {
			return
		}
		c.printf("\x00")
		if err != nil {
			c.printf("%v", err)
		}
		c.printf("\x00")
	}
}

// relay has the other end of conn carry out lines, and prints what it answers.
// Without a terminal the first failure ends it.
func relay(conn io.ReadWriter, in lines, out io.Writer) error {
	answer := bufio.NewReader(conn)
	for {
		line, err := in.ReadLine()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var text string
		if _, err = fmt.Fprintln(conn, line); err == nil {
			text, err = answer.ReadString(0)
		}
		if err != nil && strings.HasPrefix(strings.TrimSpace(line), "exit") {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the kernel has ended, or is another user's: %w", err)
		}
		if _, err := io.WriteString(out, strings.TrimSuffix(text, "\x00")); err != nil {
			return err
		}
		failure, err := answer.ReadString(0)
		if err != nil {
			return err
		}
		if failure = strings.TrimSuffix(failure, "\x00"); failure != "" {
			if _, script := in.(*scriptLines); script {
				return errors.New(failure)
			}
			fmt.Fprintln(out, failure)
		}
	}
}

// scriptLines gives the lines of a text.
type scriptLines struct{ *bufio.Scanner }

// ReadLine implements lines.
func (s *scriptLines) ReadLine() (string, error) {
	if s.Scan() {
		return s.Text(), nil
	}
	if err := s.Err(); err != nil {
		return "", err
	}
	return "", io.EOF
}
