// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cost of a scheduling decision. weft_cost.ko registers every scheduler, and
 * upstream's default, a second time as "t_<name>". It counts the cycles of each
 * get_send() in real connections. /proc/weft_cost has a line for each scheduler that has
 * decided anything: name, decisions, median and 99th percentile, in cycles of the time
 * stamp counter. That counter runs while the lab's virtual clock stands still.
 *
 * The cycles are those of the whole callback, including the reading of the counter. The
 * line "none" has the cost of that reading alone.
 */
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>

#include "../weft.h"

#define CYCLES_MAX	16384	/* longer decisions count as this long */

/**
 * struct cost - a scheduler and how long its decisions took
 * @ops: as registered
 * @target: the scheduler that decides, NULL for upstream's default
 * @decisions: how many took this many cycles
 */
struct cost {
	struct mptcp_sched_ops		ops;
	const struct mptcp_sched_ops	*target;
	u32				decisions[CYCLES_MAX + 1];
};

static struct cost *costs;
static unsigned int cost_count;

static u64 cycles(void)
{
	u32 low, high;

	/* the fences keep the measured code from moving across the reading */
	asm volatile("lfence; rdtsc; lfence" : "=a" (low), "=d" (high) : : "memory");
	return (u64)high << 32 | low;
}

static void count(struct cost *cost, u64 took)
{
	cost->decisions[min_t(u64, took, CYCLES_MAX)]++;
}

static int default_get_send(struct mptcp_sock *msk)
{
	struct sock *ssk = mptcp_subflow_get_send(msk);

	if (!ssk)
		return -EINVAL;
	mptcp_subflow_set_scheduled(mptcp_subflow_ctx(ssk), true);
	return 0;
}

static int timed_get_send(struct mptcp_sock *msk)
{
	struct cost *cost = container_of(msk->sched, struct cost, ops);
	u64 start = cycles();
	int ret;

	ret = cost->target ? weft_call_get_send(cost->target, msk) :
			     default_get_send(msk);
	count(cost, cycles() - start);
	return ret;
}

static int timed_get_retrans(struct mptcp_sock *msk)
{
	const struct cost *cost = container_of(msk->sched, struct cost, ops);

	return cost->target ? weft_call_get_retrans(cost->target, msk) :
			      weft_get_retrans(msk);
}

WEFT_SCHED_CALLBACKS_RETRANS(timed_get_send, timed_get_retrans)

static const struct mptcp_sched_ops timed_ops = {
	WEFT_SCHED_OPS_RETRANS(timed_get_send, timed_get_retrans),
	.owner	= THIS_MODULE,
};

static void print(struct seq_file *file, const char *name, const u32 *decisions)
{
	u64 total = 0, seen = 0;
	u32 median = 0, i;

	for (i = 0; i <= CYCLES_MAX; i++)
		total += decisions[i];
	if (!total)
		return;
	for (i = 0; i <= CYCLES_MAX; i++) {
		seen += decisions[i];
		if (!median && 2 * seen >= total)
			median = i;
		if (100 * seen >= 99 * total)
			break;
	}
	seq_printf(file, "%s %llu %u %u\n", name, total, median, i);
}

static int cost_show(struct seq_file *file, void *v)
{
	struct cost *nothing = &costs[cost_count];
	unsigned int i;

	memset(nothing->decisions, 0, sizeof(nothing->decisions));
	for (i = 0; i < 10000; i++) {
		u64 start = cycles();

		count(nothing, cycles() - start);
	}
	print(file, "none", nothing->decisions);
	for (i = 0; i < cost_count; i++)
		print(file, costs[i].ops.name + strlen("t_"),
		      costs[i].decisions);
	return 0;
}

static int __init add(const struct mptcp_sched_ops *target)
{
	struct cost *cost = &costs[cost_count];

	cost->ops = timed_ops;
	cost->target = target;
	if (target) {
		cost->ops.init = target->init;
		cost->ops.release = target->release;
		cost->ops.data_acked = target->data_acked;
		cost->ops.exact_burst = target->exact_burst;
		cost->ops.redundant = target->redundant;
	}
	snprintf(cost->ops.name, sizeof(cost->ops.name), "t_%s",
		 target ? target->name : "default");
	cost_count++;
	return mptcp_register_scheduler(&cost->ops);
}

static void remove_all(void)
{
	while (cost_count--)
		mptcp_unregister_scheduler(&costs[cost_count].ops);
	synchronize_rcu();
	kvfree(costs);
}

static int __init cost_init(void)
{
	unsigned int i, n = 0;
	int err;

	while (weft_schedulers[n])
		n++;
	/* one more for the default, and one for the counter alone */
	costs = kvcalloc(n + 2, sizeof(*costs), GFP_KERNEL);
	if (!costs)
		return -ENOMEM;

	err = add(NULL);
	for (i = 0; i < n && !err; i++)
		err = add(weft_schedulers[i]);
	if (!err && !proc_create_single("weft_cost", 0444, NULL, cost_show))
		err = -ENOMEM;
	if (err)
		remove_all();
	return err;
}

static void __exit cost_exit(void)
{
	remove_proc_entry("weft_cost", NULL);
	remove_all();
}

module_init(cost_init);
module_exit(cost_exit);

MODULE_DESCRIPTION("Cost of MPTCP scheduling decisions");
MODULE_LICENSE("GPL");
