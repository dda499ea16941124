/* What machine this is, and who started us on it: facts by name. Inside src/meter. */
#ifndef PYROMETER_METER_HOST_H
#define PYROMETER_METER_HOST_H

#include "meter/meter.h"

/* cpu, cores, cores_usable, memory_bytes, swap_bytes, os, kernel, machine, hostname, container, load_1, load_5, load_15 */
void host_facts(meter_fact_fn tell, void *ctx);

#endif
