"""Parts of `forecast_calibration.py`: tables, errors measured later, and what people do instead."""
