package broker

import "os"

// variable tells a process its role.
const variable = "RDMASHIM_BROKER"

// Again reports whether this process was started by Run, and shall come to it
// once more.
func Again() bool {
	_, again := os.LookupEnv(variable)
	return again
}
