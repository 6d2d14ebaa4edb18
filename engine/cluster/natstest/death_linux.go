package natstest

import "syscall"

// dieWithUs lets a server die with the process that started it, however that ends.
func dieWithUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
