package top

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/gdamore/tcell/v3"
	"github.com/gdamore/tcell/v3/color"

	"ledgerd/engine/ledger/wait"
)

// redrawEvery keeps what is said of ages true.
const redrawEvery = time.Second

// Run shows the node at an address, http://HOST:PORT, which client asks, under a name on a screen until
// ctx ends or a person quits by q, Esc or Ctrl-C. A node that does not answer is asked on.
func Run(ctx context.Context, client *http.Client, address, name string, screen tcell.Screen) error {
	if err := screen.Init(); err != nil {
		return fmt.Errorf("cannot use the terminal: %w", err)
	}
	defer screen.Fini()
	screen.HideCursor()
	var asking sync.WaitGroup
	defer asking.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	answers := make(chan news)
	asking.Go(func() { askOn(ctx, newNode(client, address), answers) })
	redraw := time.NewTicker(redrawEvery)
	defer redraw.Stop()
	v := &view{name: name}
	for {
		draw(screen, v)
		select {
		case <-ctx.Done():
			return nil
		case a := <-answers:
			v.take(a)
		case event, open := <-screen.EventQ():
			switch event := event.(type) {
			case *tcell.EventKey:
				if quits(event) {
					return nil
				}
			case *tcell.EventResize:
				screen.Sync()
			}
			if !open { // the terminal is gone
				return nil
			}
		case <-redraw.C:
		}
	}
}

// askOn asks a node again and again, as often as it lets, until ctx ends.
func askOn(ctx context.Context, n *node, answers chan<- news) {
	for {
		a := n.ask(ctx)
		select {
		case answers <- a:
		case <-ctx.Done():
			return
		}
		if wait.Sleep(ctx, a.next) != nil {
			return
		}
	}
}

func quits(key *tcell.EventKey) bool {
	return key.Str() == "q" || key.Key() == tcell.KeyEscape || key.Key() == tcell.KeyCtrlC
}

// draw shows the lines of the view, as far as they fit.
func draw(screen tcell.Screen, v *view) {
	styles := [...]tcell.Style{
		plain: tcell.StyleDefault, good: tcell.StyleDefault.Foreground(color.Green),
		bad: tcell.StyleDefault.Foreground(color.Red).Bold(true), faint: tcell.StyleDefault.Dim(true),
	}
	width, _ := screen.Size()
	screen.Clear()
	for y, l := range v.lines(width, time.Now()) {
		screen.PutStrStyled(0, y, l.text, styles[l.mood])
	}
	screen.Show()
}
