package shm

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

const (
	// EnvDir is the environment variable by which programs name Options.Dir.
	EnvDir = "RDMASHIM_SHM_DIR"
	// EnvUsers has the numbers of Options.Users, with commas between them.
	EnvUsers = "RDMASHIM_SHM_USERS"
	// unknownUser is the number that Linux shows for each user that a user
	// namespace has no number for (/proc/sys/kernel/overflowuid).
	unknownUser = 65534
)

// EnvOptions returns the options that the environment names. An error Is
// EINVAL.
func EnvOptions() (Options, error) {
	o := Options{Dir: os.Getenv(EnvDir)}
	for text := range strings.SplitSeq(os.Getenv(EnvUsers), ",") {
		if text == "" {
			continue
		}
		uid, err := strconv.ParseInt(text, 10, 31)
		switch {
		case err != nil || uid < 0:
			return o, fmt.Errorf("%s: %q is no user's number; write 1000,1001: %w", EnvUsers, text, syscall.EINVAL)
		case uid == unknownUser:
			return o, fmt.Errorf("%s: %d stands for every user that a user namespace has no number for; run as another one: %w", EnvUsers, uid, syscall.EINVAL)
		}
		o.Users = append(o.Users, int(uid))
	}
	return o, nil
}
