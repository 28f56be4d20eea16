/* The model that fmi2_cosimulation.c runs. */
#ifndef REVARB_FMU_MODEL_H
#define REVARB_FMU_MODEL_H

#include "model.h"

#define FMU_GUID "${guid}"
#define FMU_EXPORT ${macro}_EXPORT
#define FMU_INPUTS ${macro}_INPUTS
#define FMU_OUTPUTS ${macro}_OUTPUTS
#define FMU_STATES ${macro}_STATES
#define FMU_DT ${macro}_DT

#define fmu_init ${name}_init
#define fmu_set_state ${name}_set_state
#define fmu_get_state ${name}_get_state
#define fmu_step ${name}_step
#define fmu_output ${name}_output

typedef ${name}_real fmu_real;
typedef ${name}_state fmu_run;

/* Start values of the variables, as in modelDescription.xml; one input more, which nothing reads. */
${input_starts}
${state_starts}

#endif
